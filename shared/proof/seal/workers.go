package seal

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Progress is told how many of the sector's node steps are done: one per node for tree D, for every layer, for the
// column hashes and for each Poseidon tree. Calls never overlap.
type Progress func(done, total uint64)

// meter counts node steps of several goroutines.
type meter struct {
	mu          sync.Mutex
	done, total uint64
	report      Progress
}

func (m *meter) add(steps int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += uint64(steps)
	if m.report != nil {
		m.report(m.done, m.total)
	}
}

// inChunks splits 0 … count−1 among all processors and counts finished steps, stepsPerItem each.
func inChunks(ctx context.Context, m *meter, count, stepsPerItem int, do func(from, to int)) error {
	const chunk = 1024
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for from := 0; from < count; from += chunk {
		to := min(from+chunk, count)
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("seal sector: %w", err)
			}
			do(from, to)
			m.add((to - from) * stepsPerItem)
			return nil
		})
	}
	return group.Wait()
}
