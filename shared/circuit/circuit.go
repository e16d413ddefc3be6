package circuit

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// Circuit is one fixed R1CS. A circuit is walked in sections: runs of constraints and variables that follow each other
// and can be walked independently, in any order and at the same time. The concatenation of all sections, followed by
// r1cs.InputRows, is the constraint system of one partition.
type Circuit interface {
	// ID is a stable short name, e.g. "porep-32GiB".
	ID() string
	// ParamsName is the base name of the circuit's parameter files, without extension.
	ParamsName() string
	// Sections gives where each section starts, and behind them the totals: len is the number of sections + 1.
	Sections() []r1cs.Position
	// Describe emits the constraints of one section.
	Describe(section int, rows r1cs.RowSink)
	// SharedAux is the number of leading auxiliaries that rows of any section may use, as they may use any input; every
	// other auxiliary occurs only in rows of the section that allocates it.
	SharedAux() int
	// Decode reads and checks one partition's slice (see proof/c1 for PoRep).
	Decode(slice []byte) (Witness, error)
}

// Witness is what one partition's synthesis needs.
type Witness interface {
	// Synthesize walks one section and hands over its values, in order.
	Synthesize(section int, values r1cs.Values)
	// PublicInputs are the inputs without the leading ONE, in order.
	PublicInputs() []fr.Element
}

// Totals is the end position of a circuit.
func Totals(c Circuit) r1cs.Position {
	sections := c.Sections()
	return sections[len(sections)-1]
}

// Describe emits all constraints of a circuit in order, without the appended input rows.
func Describe(c Circuit, rows r1cs.RowSink) {
	for section := range len(c.Sections()) - 1 {
		c.Describe(section, rows)
	}
}
