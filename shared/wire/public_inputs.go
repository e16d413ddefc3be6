package wire

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/fault"
)

// AppendPublicInputs appends the public inputs of one partition as 32-byte big-endian canonical numbers, as they lie
// one
// partition after another in the object InputsName.
func AppendPublicInputs(data []byte, inputs []fr.Element) []byte {
	for i := range inputs {
		b := inputs[i].Bytes()
		data = append(data, b[:]...)
	}
	return data
}

// ParsePublicInputs reads the public inputs of all partitions, which have equally many.
func ParsePublicInputs(data []byte, partitions int) ([][]fr.Element, error) {
	if partitions < 1 || len(data)%(partitions*fr.Bytes) != 0 {
		return nil, fault.New(fault.Corrupt, "%d bytes are not the public inputs of %d partitions", len(data), partitions)
	}
	all := make([][]fr.Element, partitions)
	for partition := range all {
		all[partition] = make([]fr.Element, len(data)/fr.Bytes/partitions)
		for i := range all[partition] {
			at := (partition*len(all[partition]) + i) * fr.Bytes
			if err := all[partition][i].SetBytesCanonical(data[at : at+fr.Bytes]); err != nil {
				return nil, fault.New(fault.Corrupt, "public input %d of partition %d is not below the modulus", i, partition)
			}
		}
	}
	return all, nil
}
