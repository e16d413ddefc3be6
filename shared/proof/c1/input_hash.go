package c1

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"golang.org/x/crypto/blake2b"
)

// inputHashDomain separates this hash from others and fixes its version.
const inputHashDomain = "proofrack c1 input 1\n"

// InputHash identifies a job's input: BLAKE2b-256 over the claim and every value of the output, each list preceded by
// its length. It does not depend on the form of the text: order of keys, white space, unknown keys, envelope or not.
func InputHash(out *Output, claim Claim) [32]byte {
	sum, err := blake2b.New256(nil)
	if err != nil {
		panic(fmt.Sprintf("c1: unkeyed blake2b: %v", err))
	}
	h := inputHasher{bufio.NewWriterSize(sum, 1<<12)}
	_, _ = io.WriteString(h, inputHashDomain)
	h.hash(&claim.ProverID)
	h.number(claim.SectorNumber)
	h.number(uint64(out.RegisteredProof))
	for _, value := range []*[32]byte{&out.CommR, &out.CommD, &out.ReplicaID, &out.Seed, &out.Ticket} {
		h.hash(value)
	}
	h.count(len(out.VanillaProofs))
	for _, partition := range out.VanillaProofs {
		h.count(len(partition))
		for i := range partition {
			h.proof(&partition[i])
		}
	}
	_ = h.Flush()
	return [32]byte(sum.Sum(nil))
}

// inputHasher feeds values to a hash, which never fails.
type inputHasher struct{ *bufio.Writer }

func (h inputHasher) number(n uint64) {
	_, _ = h.Write(binary.LittleEndian.AppendUint64(h.AvailableBuffer(), n))
}

func (h inputHasher) count(n int) { h.number(uint64(n)) }

func (h inputHasher) hash(value *[32]byte) { _, _ = h.Write(value[:]) }

func (h inputHasher) hashes(values [][32]byte) {
	h.count(len(values))
	for i := range values {
		h.hash(&values[i])
	}
}

func (h inputHasher) proof(p *Proof) {
	h.merkle(&p.CommDProof)
	h.merkle(&p.CommRLastProof)
	for _, column := range allColumns(p) {
		h.number(uint64(column.Column.Index))
		h.hashes(column.Column.Rows)
		h.merkle(&column.Inclusion)
	}
	h.count(len(p.LabelingProofs))
	for i := range p.LabelingProofs {
		h.label(&p.LabelingProofs[i])
	}
	h.label(&p.EncodingProof)
}

func (h inputHasher) label(l *LabelProof) {
	h.number(uint64(l.LayerIndex))
	h.number(l.Node)
	h.hashes(l.Parents[:])
}

func (h inputHasher) merkle(m *MerkleProof) {
	h.hash(&m.Root)
	h.hash(&m.Leaf)
	for _, elements := range [][]PathElement{m.Base, m.Sub, m.Top} {
		h.count(len(elements))
		for i := range elements {
			h.number(elements[i].Index)
			h.hashes(elements[i].Hashes)
		}
	}
}
