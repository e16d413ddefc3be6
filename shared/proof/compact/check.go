package compact

import (
	"errors"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/internal/workers"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// ErrUnsatisfied is wrapped when a segment's values do not satisfy its circuit.
var ErrUnsatisfied = errors.New("constraints are not satisfied")

// Check computes a, b and c of every row from the circuit's combinations and the segment's assignment, with plain field
// arithmetic, and compares: a and b with what is stored, c with a·b. It decides whether synthesis or a device is at
// fault when a proof does not verify. It takes count goroutines and some 100 times as long as synthesis.
func (s *Segment) Check(c circuit.Circuit, count int) error {
	if c.ID() != s.circuitID || circuit.Totals(c) != s.counts {
		return fmt.Errorf("%w: segment is of circuit %s, asked to check against %s", ErrCorrupt, s.circuitID, c.ID())
	}
	starts := c.Sections()
	err := workers.Each(count, len(starts)-1, func(_, i int) error { return s.checkSection(c, i, starts[i].Rows) })
	if err != nil {
		return err
	}
	return s.checkInputRows()
}

// checkInputRows compares the appended rows I_i · 0 = 0, which no circuit describes.
func (s *Segment) checkInputRows() error {
	inputs := s.Inputs()
	if !inputs[0].IsOne() {
		return fmt.Errorf("%w: input 0 is %s, not one", ErrUnsatisfied, inputs[0].String())
	}
	var a, b [1]fr.Element
	for i := range inputs {
		row := s.counts.Rows + i
		s.ExpandA(row, a[:])
		s.ExpandB(row, b[:])
		if !a[0].Equal(&inputs[i]) || !b[0].IsZero() {
			return fmt.Errorf("%w: stored a and b of row %d differ from those of input %d", ErrUnsatisfied, row, i)
		}
	}
	return nil
}

func (s *Segment) checkSection(c circuit.Circuit, section, firstRow int) error {
	var first error
	check := r1cs.Satisfaction{Value: s.Value}
	check.Visit = func(row int, a, b, _ *fr.Element) {
		var stored [2]fr.Element
		s.ExpandA(firstRow+row, stored[:1])
		s.ExpandB(firstRow+row, stored[1:])
		if first == nil && (!stored[0].Equal(a) || !stored[1].Equal(b)) {
			first = fmt.Errorf("%w: stored a and b of row %d differ from the circuit's", ErrUnsatisfied, firstRow+row)
		}
	}
	c.Describe(section, &check)
	if rows := check.Unsatisfied(); len(rows) > 0 {
		return fmt.Errorf("%w: row %d of circuit %s", ErrUnsatisfied, firstRow+rows[0], c.ID())
	}
	return first
}
