package artifact

import (
	"context"
	"errors"
	"fmt"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/internal/workers"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// ErrCorrupt is wrapped by every refusal of an artifact file.
var ErrCorrupt = errors.New("artifact is corrupt")

// Artifact is what is kept of one circuit.
type Artifact struct {
	CircuitID string
	Totals    r1cs.Position
	Density   *r1cs.Density
}

// Build walks the circuit's structure on count goroutines. A cancelled context ends it between sections.
func Build(ctx context.Context, c circuit.Circuit, count int) (*Artifact, error) {
	totals := circuit.Totals(c)
	a := &Artifact{CircuitID: c.ID(), Totals: totals, Density: r1cs.NewDensity(totals)}
	err := workers.Each(count, len(c.Sections())-1, func(_, section int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.Describe(section, a.Density)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("build artifact of circuit %s: %w", c.ID(), err)
	}
	return a, nil
}
