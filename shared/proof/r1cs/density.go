package r1cs

import "sync/atomic"

// Density tells which variables occur in A and in B (spec 1.4). Bit i of a bitmap is in word i/64. Rows may be recorded
// from several goroutines.
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
			mark(d.AAux, v.Index())
		}
	}
	for i := range b {
		if v := b[i].Var; v.IsAux() {
			mark(d.BAux, v.Index())
		} else {
			mark(d.BInputs, v.Index())
		}
	}
}

func mark(bitmap []uint64, index int) {
	word, bit := &bitmap[index/64], uint64(1)<<(index%64)
	if atomic.LoadUint64(word)&bit == 0 {
		atomic.OrUint64(word, bit)
	}
}
