package artifact

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/proofrack/proofrack/shared/circuit"
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

// Build walks the circuit's structure on the given number of goroutines. A cancelled context ends it between sections.
func Build(ctx context.Context, c circuit.Circuit, workers int) (*Artifact, error) {
	totals := circuit.Totals(c)
	a := &Artifact{CircuitID: c.ID(), Totals: totals, Density: r1cs.NewDensity(totals)}
	sections := len(c.Sections()) - 1
	var next atomic.Int64
	var group sync.WaitGroup
	for range max(1, min(workers, sections)) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < sections && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				c.Describe(i, a.Density)
			}
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("build artifact of circuit %s: %w", c.ID(), err)
	}
	return a, nil
}
