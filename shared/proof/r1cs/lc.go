package r1cs

import (
	"fmt"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Var names one variable: an input (public) or an auxiliary. The numeric order of Vars is the canonical order of terms:
// inputs by index, then auxiliaries by index (spec c2-circuit.md 6.3).
type Var uint32

const auxFlag Var = 1 << 31

// VarsMax bounds the number of variables of each kind.
const VarsMax = 1<<31 - 1

// One is the constant-one variable, input 0.
const One Var = 0

// InputVar is the input with the given index; index 0 is ONE.
func InputVar(index int) Var { return Var(checkIndex(index)) }

// AuxVar is the auxiliary variable with the given index.
func AuxVar(index int) Var { return Var(checkIndex(index)) | auxFlag }

// IsAux tells auxiliaries from inputs.
func (v Var) IsAux() bool { return v&auxFlag != 0 }

// Index is the variable's number within its kind, from 0.
func (v Var) Index() int { return int(v &^ auxFlag) }

// String prints I3 or A17.
func (v Var) String() string {
	if v.IsAux() {
		return fmt.Sprintf("A%d", v.Index())
	}
	return fmt.Sprintf("I%d", v.Index())
}

func checkIndex(index int) uint32 {
	if index < 0 || index > VarsMax {
		panic(fmt.Sprintf("r1cs: variable index %d outside 0…%d", index, VarsMax))
	}
	return uint32(index)
}

// Term is coefficient · variable. The coefficient is in gnark-crypto's Montgomery form.
type Term struct {
	Var   Var
	Coeff fr.Element
}

// LC is a linear combination in normal form: ascending variables, each once, no zero coefficient.
type LC []Term

// normalize sorts terms, merges equal variables and drops zeros, in place (spec 1.2).
func normalize(terms []Term) LC {
	if !slices.IsSortedFunc(terms, compareTerms) {
		slices.SortFunc(terms, compareTerms)
	}
	out := terms[:0]
	for _, t := range terms {
		if n := len(out); n > 0 && out[n-1].Var == t.Var {
			out[n-1].Coeff.Add(&out[n-1].Coeff, &t.Coeff)
			continue
		}
		if n := len(out); n > 0 && out[n-1].Coeff.IsZero() {
			out = out[:n-1]
		}
		out = append(out, t)
	}
	if n := len(out); n > 0 && out[n-1].Coeff.IsZero() {
		out = out[:n-1]
	}
	return LC(out)
}

func compareTerms(a, b Term) int {
	switch {
	case a.Var < b.Var:
		return -1
	case a.Var > b.Var:
		return 1
	}
	return 0
}

// Eval is the value of the combination under an assignment given by value.
func (lc LC) Eval(value func(Var) fr.Element) fr.Element {
	var sum, product fr.Element
	for i := range lc {
		x := value(lc[i].Var)
		product.Mul(&x, &lc[i].Coeff)
		sum.Add(&sum, &product)
	}
	return sum
}

// RowSink consumes constraints a·b = c in order. The slices are only valid during the call.
type RowSink interface {
	Row(a, b, c LC)
}

// InputRows emits the rows `I_i · 0 = 0` that every Groth16 driver appends after the circuit (spec 1.3).
func InputRows(rows RowSink, inputCount int) {
	lc := make(LC, 1)
	lc[0].Coeff.SetOne()
	for i := range inputCount {
		lc[0].Var = InputVar(i)
		rows.Row(lc, nil, nil)
	}
}
