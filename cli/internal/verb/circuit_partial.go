package verb

import (
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// partial is the beginning of a circuit: its first sections as a circuit of their own. The head and one challenge of a
// sector size are the test systems F21 and F22 of the circuit specification. It has no parameters.
type partial struct {
	circuit.Circuit
	id       string
	sections int
}

// ID is the name of the test system.
func (p *partial) ID() string { return p.id }

// ParamsName says that there are none.
func (p *partial) ParamsName() string { return "" }

// Sections are the first ones of the whole circuit.
func (p *partial) Sections() []r1cs.Position { return p.Circuit.Sections()[:p.sections+1] }
