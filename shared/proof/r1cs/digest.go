package r1cs

import (
	"encoding/binary"
	"encoding/hex"
	"hash"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
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

// Density tells which variables occur in A and in B (spec 1.4). Bit i of a bitmap is in word i/64.
type Density struct {
	AAux, BAux, BInputs []uint64
}

// NewDensity makes room for the densities of a circuit with the given totals.
func NewDensity(totals Position) *Density {
	words := func(n int) []uint64 { return make([]uint64, (n+63)/64) }
	return &Density{AAux: words(totals.Aux), BAux: words(totals.Aux), BInputs: words(totals.Inputs)}
}

// Row records one constraint.
func (d *Density) Row(a, b, _ LC) {
	for i := range a {
		if v := a[i].Var; v.IsAux() {
			d.AAux[v.Index()/64] |= 1 << (v.Index() % 64)
		}
	}
	for i := range b {
		v := b[i].Var
		if v.IsAux() {
			d.BAux[v.Index()/64] |= 1 << (v.Index() % 64)
		} else {
			d.BInputs[v.Index()/64] |= 1 << (v.Index() % 64)
		}
	}
}

// Satisfaction checks constraints against an assignment with plain field arithmetic. It shares no code with the walk
// that computes values: it sees combinations and reads the assignment through Value.
type Satisfaction struct {
	// Value gives a variable's value.
	Value func(Var) fr.Element
	// Visit, when set, gets the three evaluations of every row in order.
	Visit func(row int, a, b, c *fr.Element)

	rows        int
	unsatisfied []int
}

// unsatisfiedMax bounds how many rows are named.
const unsatisfiedMax = 16

// Row checks one constraint.
func (s *Satisfaction) Row(a, b, c LC) {
	av, bv, cv := a.Eval(s.Value), b.Eval(s.Value), c.Eval(s.Value)
	var product fr.Element
	product.Mul(&av, &bv)
	if !product.Equal(&cv) && len(s.unsatisfied) < unsatisfiedMax {
		s.unsatisfied = append(s.unsatisfied, s.rows)
	}
	if s.Visit != nil {
		s.Visit(s.rows, &av, &bv, &cv)
	}
	s.rows++
}

// Rows is how many constraints were checked.
func (s *Satisfaction) Rows() int { return s.rows }

// Unsatisfied are the numbers of the first rows that do not hold, at most 16.
func (s *Satisfaction) Unsatisfied() []int { return s.unsatisfied }
