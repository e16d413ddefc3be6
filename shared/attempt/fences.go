package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// Fences compares attempts with the records of jobs. It only reads.
type Fences struct {
	kv        bus.KV
	connected func() bool
	limit     time.Duration
}

// NewFences reads from the bucket of records. The limit bounds one question: a device waits for the answer. While
// connected says no, nothing is asked.
func NewFences(kv bus.KV, connected func() bool, limit time.Duration) *Fences {
	return &Fences{kv: kv, connected: connected, limit: limit}
}

// errUnknown says that the record could not be asked.
var errUnknown = errors.New("record cannot be asked")

// Check is nil when the attempt owns its partition. Errors: kind Lost when it does not, or when the record is gone;
// errUnknown, of kind Transient, when nobody knows.
func (f *Fences) Check(ctx context.Context, a job.Attempt) error {
	if !f.connected() {
		return fault.As(fault.Transient, fmt.Errorf("attempt %s: %w: the bus is away", a, errUnknown))
	}
	ctx, cancel := context.WithTimeout(ctx, f.limit)
	defer cancel()
	entry, err := f.kv.Get(ctx, wire.JobKey(a.Job))
	if fault.KindOf(err) == fault.NotFound {
		return fmt.Errorf("attempt %s: %w", a, ErrOrphaned)
	}
	if err != nil {
		return fault.As(fault.Transient, fmt.Errorf("attempt %s: %w: %w", a, errUnknown, err))
	}
	var r struct { // as much of the record as the fence needs: it grows with the job's history
		State      job.State `json:"state"`
		Partitions []struct {
			Stage job.Stage `json:"stage"`
			Fence uint64    `json:"fence"`
		} `json:"partitions"`
	}
	if err := json.Unmarshal(entry.Value, &r); err != nil {
		return fault.As(fault.Transient, fmt.Errorf("attempt %s: %w: %w", a, errUnknown, err))
	}
	if a.Partition >= len(r.Partitions) {
		return fmt.Errorf("attempt %s: job has %d partitions: %w", a, len(r.Partitions), job.ErrStale)
	}
	p := r.Partitions[a.Partition]
	if r.State != job.Active || p.Fence != a.Fence || !p.Stage.Running() {
		return fmt.Errorf("attempt %s (job %s, partition %s, fence %d): %w", a, r.State, p.Stage, p.Fence, job.ErrStale)
	}
	return nil
}
