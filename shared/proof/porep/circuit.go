package porep

import (
	"fmt"
	"sync"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// Circuit is the circuit of one sector size. It implements circuit.Circuit.
type Circuit struct {
	id, paramsName string
	shape          Shape
	sections       func() []r1cs.Position
}

// Circuits are the circuits of all sector sizes, published and unpublished.
func Circuits() []circuit.Circuit {
	var all []circuit.Circuit
	for _, size := range sdr.Sizes() {
		all = append(all, ForSize(size))
	}
	return all
}

// ForSize is the circuit of a sector size, the same one at each call: counting its sections walks a whole challenge. It
// panics when the size does not exist: parse sizes with sdr.ParseSectorSize.
func ForSize(size sdr.SectorSize) *Circuit {
	c, ok := bySize()[size]
	if !ok {
		panic(fmt.Sprintf("porep: sector size %s does not exist", size))
	}
	return c
}

var bySize = sync.OnceValue(func() map[sdr.SectorSize]*Circuit {
	all := map[sdr.SectorSize]*Circuit{}
	for _, size := range sdr.Sizes() {
		config := sdr.Config{Size: size}
		tree := size.Shape()
		shape, err := NewShape(int(size.Nodes()), size.LayerCount(), config.ChallengesPerPartition(),
			tree.Base, tree.Sub, tree.Top)
		if err != nil {
			panic(fmt.Sprintf("porep: sector size %s: %v", size, err))
		}
		all[size] = newCircuit("porep-"+size.String(), sdr.ParamsName(size), shape)
	}
	return all
})

// OfShape is the circuit of any shape, without parameter files: those of the specification's test systems.
func OfShape(id string, shape Shape) *Circuit { return newCircuit(id, "", shape) }

func newCircuit(id, paramsName string, shape Shape) *Circuit {
	return &Circuit{id: id, paramsName: paramsName, shape: shape, sections: sync.OnceValue(shape.sections)}
}

// ID is "porep-" and the sector size.
func (c *Circuit) ID() string { return c.id }

// ParamsName is the base name of the parameter files (spec 7.2).
func (c *Circuit) ParamsName() string { return c.paramsName }

// Sections gives the starts of the head and of every challenge, then the totals.
func (c *Circuit) Sections() []r1cs.Position { return c.sections() }

// SharedAux is the number of auxiliaries in the head.
func (c *Circuit) SharedAux() int { return c.Sections()[1].Aux }

// Describe emits the constraints of one section.
func (c *Circuit) Describe(section int, rows r1cs.RowSink) {
	s := r1cs.NewSystem(c.Sections()[section], rows, nil)
	if section == 0 {
		walkHead(s, &c1.Slice{})
		return
	}
	h := walkHead(r1cs.NewSystem(r1cs.Start(), discardRows{}, nil), &c1.Slice{})
	walkChallenge(s, &h, blankChallenge(c.shape), &hashes{})
}

// discardRows makes a walk number its variables without anyone reading the rows.
type discardRows struct{}

func (discardRows) Row(_, _, _ r1cs.LC) {}

// sections counts the head and one challenge; all challenges are alike.
func (s Shape) sections() []r1cs.Position {
	start := r1cs.NewSystem(r1cs.Start(), nil, nil)
	h := walkHead(start, &c1.Slice{})
	positions := []r1cs.Position{r1cs.Start(), start.Position()}
	one := r1cs.NewSystem(start.Position(), nil, nil)
	walkChallenge(one, &h, blankChallenge(s), &hashes{})
	step := one.Position().Minus(start.Position())
	for range s.Challenges {
		positions = append(positions, positions[len(positions)-1].Plus(step))
	}
	return positions
}
