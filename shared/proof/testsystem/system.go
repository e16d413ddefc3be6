package testsystem

import (
	"errors"
	"fmt"
	"strings"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// System is one constraint system of the specification.
type System struct {
	// Name is F1 to F27, or a few words for the finer ones.
	Name string
	// Inputs (with ONE), Aux and Rows are the totals, Hash the canonical hash, as the specification gives them.
	Inputs, Aux, Rows int
	Hash              string

	walk source
}

// source gives a system's totals and rows.
type source interface {
	totals() r1cs.Position
	describe(rows r1cs.RowSink)
}

// walked is a system that is one walk.
type walked func(s *r1cs.System)

func (w walked) totals() r1cs.Position {
	s := r1cs.NewSystem(r1cs.Start(), nil, nil)
	w(s)
	return s.Position()
}

func (w walked) describe(rows r1cs.RowSink) { w(r1cs.NewSystem(r1cs.Start(), rows, nil)) }

// Totals are the totals of what this build walks.
func (s *System) Totals() r1cs.Position { return s.walk.totals() }

// Describe emits the rows of what this build walks.
func (s *System) Describe(rows r1cs.RowSink) { s.walk.describe(rows) }

// Digest hashes what this build walks, in constant memory.
func (s *System) Digest() string {
	digest := r1cs.NewDigest(s.Totals())
	s.Describe(digest)
	return digest.Hex()
}

// ErrUnknown is wrapped when there is no system of a name.
var ErrUnknown = errors.New("unknown test system")

// Find is the system with a name such as F26.
func Find(name string) (*System, error) {
	var names []string
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("%w %q: there are %s", ErrUnknown, name, strings.Join(names, ", "))
}

// All are the numbered systems in order, then the finer ones.
func All() []*System { return append(append(small(), stacked()...), fine()...) }
