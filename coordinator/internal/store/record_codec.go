package store

import (
	"encoding/json"
	"fmt"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// RecordBytesMax bounds an encoded record: below the 1 MiB that the bus carries, with room for headers.
const RecordBytesMax = 900 << 10

// What stays of an attempt's texts when a record is too long, bytes.
const (
	messageKept = 160
	textKept    = 48
)

// clone copies what transitions of a record change: they replace what pointers point at and never write through them.
func clone(r *job.Record) *job.Record {
	c := *r
	c.Partitions = append([]job.Partition(nil), r.Partitions...)
	for i := range c.Partitions {
		c.Partitions[i].Attempts = append([]job.AttemptRecord(nil), c.Partitions[i].Attempts...)
	}
	return &c
}

// encode writes a record. One that is too long loses text of its history first, then attempts, which are counted; so
// any record of a job with at most job.PartitionsMax partitions can be written.
func encode(r *job.Record) ([]byte, error) {
	r.Version = job.RecordVersion
	for _, cut := range []func(*job.Record){boundFault, cutMessages, cutHistory, cutTexts} {
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

// boundFault bounds why the job ended, which may come from a worker.
func boundFault(r *job.Record) {
	if f := r.Fault; f != nil {
		r.Fault = &fault.Report{
			Kind: fault.Kind(kept(string(f.Kind), textKept)), Stage: kept(f.Stage, textKept),
			Message: kept(f.Message, fault.MessageBytesMax), Hint: kept(f.Hint, fault.HintBytesMax),
		}
	}
}

// cutMessages shortens what attempts said, the last one of each partition excepted, and drops their measurements.
func cutMessages(r *job.Record) {
	for i := range r.Partitions {
		attempts := r.Partitions[i].Attempts
		for k := range max(len(attempts)-1, 0) {
			attempts[k].Seconds = nil
			cutMessage(&attempts[k])
		}
	}
}

func cutMessage(a *job.AttemptRecord) {
	if a.Fault != nil {
		a.Fault = &fault.Report{
			Kind: fault.Kind(kept(string(a.Fault.Kind), textKept)), Stage: kept(a.Fault.Stage, textKept),
			Message: kept(a.Fault.Message, messageKept), Hint: kept(a.Fault.Hint, messageKept),
		}
	}
}

// cutHistory keeps the last attempt of each partition only, and cuts its message. The others are counted.
func cutHistory(r *job.Record) {
	for i := range r.Partitions {
		p := &r.Partitions[i]
		p.Unlist(0, len(p.Attempts)-1)
		if last := p.Last(); last != nil {
			cutMessage(last)
		}
	}
}

// cutTexts bounds everything else that workers said of the last attempts.
func cutTexts(r *job.Record) {
	for i := range r.Partitions {
		last := r.Partitions[i].Last()
		if last == nil {
			continue
		}
		last.Seconds = nil
		for _, text := range []*string{
			&last.Handoff, &last.HandoffReason, &last.Build, &last.DeviceUUID, &last.TraceID,
		} {
			*text = kept(*text, textKept)
		}
	}
}

// kept is the beginning of a text that takes at most so many bytes in JSON, and a mark where it was cut.
func kept(text string, bytesMax int) string {
	bytes := 0
	for i, c := range text {
		switch {
		case c == '"' || c == '\\':
			bytes += 2
		case c < ' ' || c > '~' || c == '<' || c == '>' || c == '&':
			bytes += 6
		default:
			bytes++
		}
		if bytes > bytesMax {
			return text[:i] + " …"
		}
	}
	return text
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
