package store

import (
	"encoding/json"
	"fmt"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// RecordBytesMax bounds an encoded record: below the 1 MiB that the bus carries, with room for headers.
const RecordBytesMax = 900 << 10

// messageKept is how much of an old attempt's message stays when a record is too long, bytes.
const messageKept = 160

// clone copies what transitions of a record change: they replace what pointers point at and never write through them.
func clone(r *job.Record) *job.Record {
	c := *r
	c.Partitions = append([]job.Partition(nil), r.Partitions...)
	for i := range c.Partitions {
		c.Partitions[i].Attempts = append([]job.AttemptRecord(nil), c.Partitions[i].Attempts...)
	}
	return &c
}

// encode writes a record. One that is too long loses text of its history first; what is still too long is refused.
func encode(r *job.Record) ([]byte, error) {
	r.Version = job.RecordVersion
	for _, cut := range []func(*job.Record){func(*job.Record) {}, cutMessages, cutHistory} {
		cut(r)
		data, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("encode record of job %s: %w", r.ID, err)
		}
		if len(data) <= RecordBytesMax {
			return data, nil
		}
	}
	return nil, fault.New(fault.Exhausted, "encode record of job %s: over the limit of %d bytes", r.ID, RecordBytesMax)
}

// cutMessages shortens what attempts said, the last one of each partition excepted, and drops their measurements.
func cutMessages(r *job.Record) {
	for i := range r.Partitions {
		attempts := r.Partitions[i].Attempts
		for k := range max(len(attempts)-1, 0) {
			a := &attempts[k]
			a.Seconds = nil
			if a.Fault != nil && len(a.Fault.Message) > messageKept {
				short := *a.Fault
				short.Message = short.Message[:messageKept] + " …"
				a.Fault = &short
			}
		}
	}
}

// cutHistory keeps the last attempt of each partition only, and cuts its message.
func cutHistory(r *job.Record) {
	for i := range r.Partitions {
		p := &r.Partitions[i]
		if len(p.Attempts) > 1 {
			p.Attempts = p.Attempts[len(p.Attempts)-1:]
		}
		if last := p.Last(); last != nil && last.Fault != nil && len(last.Fault.Message) > messageKept {
			short := *last.Fault
			short.Message = short.Message[:messageKept] + " …"
			last.Fault = &short
		}
	}
}

// decode reads a record and checks what the rest of the program relies on.
func decode(id job.ID, data []byte) (*job.Record, error) {
	if len(data) > 1<<20 {
		return nil, fault.New(fault.Corrupt, "record of job %s: %d bytes", id, len(data))
	}
	r := &job.Record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fault.As(fault.Corrupt, fmt.Errorf("decode record of job %s: %w", id, err))
	}
	if r.Version < 1 || r.Version > job.RecordVersion {
		return nil, fault.WithHint(
			fault.New(fault.Corrupt, "record of job %s: version %d, this build reads 1 to %d", id, r.Version, job.RecordVersion),
			"run coordinators of the same or of neighbouring builds")
	}
	if err := check(id, r); err != nil {
		return nil, fault.As(fault.Corrupt, fmt.Errorf("record of job %s: %w", id, err))
	}
	return r, nil
}

func check(id job.ID, r *job.Record) error {
	if r.ID != id {
		return fmt.Errorf("it names job %q", r.ID)
	}
	if _, err := job.ParseID(string(r.ID)); err != nil {
		return err
	}
	if _, err := job.ParseTenant(string(r.Tenant)); err != nil {
		return err
	}
	if _, err := job.ParseKey(r.Key); err != nil {
		return err
	}
	switch r.State {
	case job.Active, job.Cancelling, job.Done, job.Failed, job.Cancelled:
	default:
		return fmt.Errorf("unknown state %q", r.State)
	}
	if n := len(r.Partitions); n < 1 || n > job.PartitionsMax {
		return fmt.Errorf("%d partitions, 1 to %d can be", n, job.PartitionsMax)
	}
	for i := range r.Partitions {
		p := &r.Partitions[i]
		switch p.Stage {
		case job.Waiting, job.Verified, job.StageFailed, job.StageStopped:
		default:
			if !p.Stage.Running() || p.Node == "" || p.Device == "" || p.Fence == 0 {
				return fmt.Errorf("partition %d: stage %q on node %q, fence %d", i, p.Stage, p.Node, p.Fence)
			}
		}
		if p.Stage == job.Verified && len(p.Proof) == 0 {
			return fmt.Errorf("partition %d is verified without a proof", i)
		}
		if len(p.Attempts) > job.AttemptsKept {
			return fmt.Errorf("partition %d: %d attempts", i, len(p.Attempts))
		}
	}
	return nil
}
