package r1cs

import (
	"encoding/binary"
	"encoding/hex"
	"hash"

	"golang.org/x/crypto/blake2s"
)

// Digest computes the canonical constraint-system hash of spec c2-circuit.md 6.3 in constant memory. The totals come
// first in the hash, so they must be known before the rows.
type Digest struct {
	hash hash.Hash
	buf  []byte
	rows int
}

// NewDigest starts the digest of a system with the given totals; the appended input rows are not part of it.
func NewDigest(totals Position) *Digest {
	h, err := blake2s.New256(nil)
	if err != nil {
		panic(err) // only a key can be at fault, and there is none
	}
	d := &Digest{hash: h}
	for _, n := range []int{totals.Inputs, totals.Aux, totals.Rows} {
		d.buf = binary.BigEndian.AppendUint64(d.buf, uint64(n))
	}
	return d
}

// digestBufferBytes is how much is collected before it is hashed.
const digestBufferBytes = 1 << 16

// Row adds one constraint.
func (d *Digest) Row(a, b, c LC) {
	d.rows++
	for _, lc := range []LC{a, b, c} {
		d.combination(lc)
	}
	if len(d.buf) >= digestBufferBytes {
		d.flush()
	}
}

func (d *Digest) combination(lc LC) {
	d.buf = binary.BigEndian.AppendUint64(d.buf, uint64(len(lc)))
	for i := range lc {
		kind := byte('I')
		if lc[i].Var.IsAux() {
			kind = 'A'
		}
		d.buf = append(d.buf, kind)
		d.buf = binary.BigEndian.AppendUint64(d.buf, uint64(lc[i].Var.Index()))
		coeff := lc[i].Coeff.Bytes()
		d.buf = append(d.buf, coeff[:]...)
	}
}

func (d *Digest) flush() {
	d.hash.Write(d.buf)
	d.buf = d.buf[:0]
}

// Rows is how many constraints were added.
func (d *Digest) Rows() int { return d.rows }

// Hex is the hash of what was added, in lowercase hex.
func (d *Digest) Hex() string {
	d.flush()
	return hex.EncodeToString(d.hash.Sum(nil))
}
