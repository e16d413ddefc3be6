package r1cs

import "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

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
