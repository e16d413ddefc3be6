package compact

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/internal/workers"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// Job says what to synthesize and how.
type Job struct {
	Circuit   circuit.Circuit
	Witness   circuit.Witness
	Partition int // index, recorded in the segment
	Workers   int // goroutines; less than 1 means 1
}

// LayoutOf is the layout of a circuit's segments.
func LayoutOf(c circuit.Circuit) (*Layout, error) {
	l, err := NewLayout(circuit.Totals(c))
	if err != nil {
		return nil, fmt.Errorf("lay out segment of circuit %s: %w", c.ID(), err)
	}
	return l, nil
}

// Memory allocates heap memory for a segment.
func (l *Layout) Memory() []byte {
	w := make([]uint64, l.Bytes()/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), l.Bytes())
}

// Synthesize computes one partition into memory and seals it. Memory must have LayoutOf(Circuit).Bytes() bytes, aligned
// to 8; what it held before does not matter. A cancelled context ends it between sections and leaves it unsealed.
func (j *Job) Synthesize(ctx context.Context, memory []byte) (*Segment, error) {
	l, err := LayoutOf(j.Circuit)
	if err != nil {
		return nil, err
	}
	starts := j.Circuit.Sections()
	s, err := create(memory, l, j.Circuit.ID(), j.Partition, starts)
	if err != nil {
		return nil, fmt.Errorf("synthesize partition %d of %s: %w", j.Partition, j.Circuit.ID(), err)
	}
	one := r1cs.Element(1)
	s.Inputs()[0] = one
	err = workers.Each(j.Workers, len(starts)-1, func(_, i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		w := s.section(starts[i], starts[i+1])
		j.Witness.Synthesize(i, w)
		w.finish(starts[i+1])
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("synthesize partition %d of %s: %w", j.Partition, j.Circuit.ID(), err)
	}
	s.appendInputRows()
	if err := s.seal(j.Workers); err != nil {
		return nil, fmt.Errorf("seal partition %d of %s: %w", j.Partition, j.Circuit.ID(), err)
	}
	return s, nil
}

// appendInputRows adds the rows I_i · 0 = 0 of spec c2-circuit.md 1.3.
func (s *Segment) appendInputRows() {
	start := s.counts
	end := start
	end.Rows, end.FullA = start.RowsTotal(), start.FullA+start.Inputs
	w := s.section(start, end)
	for i := range s.Inputs() {
		w.FullBitRow(&s.Inputs()[i], 0)
	}
	w.finish(end)
}
