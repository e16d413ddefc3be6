package coordinator

import (
	"errors"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/wire"
)

// StreamsConfig sizes what is set up on the NATS servers. Sizes count as set aside there, whether they are used or not.
type StreamsConfig struct {
	Tenants     []string       `doc:"Names of the tenants; each gets its own buckets for inputs and proofs."`
	Replicas    int            `doc:"On how many servers everything is kept: 1, 3 or 5."`
	QueueBytes  bytesize.Bytes `doc:"Size of each of the three work queues; a full one refuses."`
	EventBytes  bytesize.Bytes `doc:"Size of the stream of events; the oldest go first."`
	EventAge    time.Duration  `doc:"How long events are kept."`
	LetterBytes bytesize.Bytes `doc:"Size of the stream of dead letters; the oldest go first."`
	LetterAge   time.Duration  `doc:"How long dead letters are kept."`
	JobBytes    bytesize.Bytes `doc:"Size of the bucket of job records."`
	SliceBytes  bytesize.Bytes `doc:"Size of the bucket of slices."`
	InputBytes  bytesize.Bytes `doc:"Size of each tenant's bucket of inputs."`
	ProofBytes  bytesize.Bytes `doc:"Size of each tenant's bucket of proofs."`
	Duplicates  time.Duration  `doc:"How long message ids are remembered, so that publishing again does nothing."`
}

// DefaultStreams fit what is kept by default, and the shipped NATS server, which tests compute. A 32 GiB sector has ten
// partitions: its slices take 11 MB; its record 18 KB while it lives, in which it may grow, and 12 KB when it has
// ended; its audit record 6 KB; its proof 3 KB with what the server adds. So there is room for
//
//	slice_bytes   4 GiB   390 sectors that have not ended; further submits are refused until some have
//	job_bytes     1 GiB   half of it: records of 10,000 jobs that live (live_jobs_max) and of 10,000 that have ended
//	                      (retention_count); a quarter: 40,000 audit records (audit_count), some 18 days of one card
//	                      that proves a sector in 38 s; the rest: keys, and marks of what was deleted
//	proof_bytes  64 MiB   half of it: proofs of 10,000 jobs (retention_count)
//	input_bytes   4 GiB   six of the largest inputs at a time
//
// All that is 9.5 GiB, and 4.1 GiB more for each further tenant: five tenants in the 32 GB of deploy/nats. What one
// tenant's jobs hold is bounded by its equal share of slice_bytes and job_bytes.
func DefaultStreams() StreamsConfig {
	return StreamsConfig{
		Tenants: []string{"main"}, Replicas: 1,
		QueueBytes: 64 * bytesize.MiB, EventBytes: 128 * bytesize.MiB, EventAge: 7 * 24 * time.Hour,
		LetterBytes: 64 * bytesize.MiB, LetterAge: 30 * 24 * time.Hour,
		JobBytes: bytesize.GiB, SliceBytes: 4 * bytesize.GiB, InputBytes: 4 * bytesize.GiB,
		ProofBytes: 64 * bytesize.MiB, Duplicates: bus.DuplicateWindowDefault,
	}
}

// Validate reports all problems.
func (c *StreamsConfig) Validate() error {
	_, err := c.tenants()
	errs := []error{fault.As(fault.Invalid, err)}
	if len(c.Tenants) == 0 {
		errs = append(errs, fault.New(fault.Invalid, "tenants: there must be one at least"))
	}
	if c.EventAge <= 0 || c.LetterAge <= 0 || c.Duplicates <= 0 {
		errs = append(errs, fault.New(fault.Invalid, "event_age, letter_age and duplicates: must be positive"))
	}
	for key, size := range map[string]bytesize.Bytes{
		"queue_bytes": c.QueueBytes, "event_bytes": c.EventBytes, "letter_bytes": c.LetterBytes, "job_bytes": c.JobBytes,
		"slice_bytes": c.SliceBytes, "input_bytes": c.InputBytes, "proof_bytes": c.ProofBytes,
	} {
		if size < bytesize.MiB {
			errs = append(errs, fault.New(fault.Invalid, "%s: must be at least 1MiB, not %s", key, size))
		}
	}
	if c.Replicas != 1 && c.Replicas != 3 && c.Replicas != 5 {
		errs = append(errs, fault.New(fault.Invalid, "replicas: must be 1, 3 or 5, not %d", c.Replicas))
	}
	return errors.Join(errs...)
}

// leadBytes is the size of the two small buckets.
const (
	leadBytes = 1 * bytesize.MiB
	nodeBytes = 16 * bytesize.MiB
)

// Topology is the table of design section 2.
func (c *StreamsConfig) Topology() bus.Topology {
	queue := func(name, subject string) bus.Stream {
		return bus.Stream{
			Name: name, Subjects: []string{subject}, Retention: bus.WorkQueue, BytesMax: c.QueueBytes,
			MessageBytesMax: bytesize.MiB, DuplicateWindow: c.Duplicates,
		}
	}
	log := func(name, subject string, size bytesize.Bytes, age time.Duration) bus.Stream {
		return bus.Stream{
			Name: name, Subjects: []string{subject}, Retention: bus.Limits, BytesMax: size, AgeMax: age, DropOldest: true,
			MessageBytesMax: bytesize.MiB, DuplicateWindow: min(c.Duplicates, age),
		}
	}
	t := bus.Topology{
		Replicas: c.Replicas,
		Streams: []bus.Stream{
			queue(wire.StreamSynth, wire.AllSynth), queue(wire.StreamProve, wire.AllProve),
			queue(wire.StreamResult, wire.AllResult),
			log(wire.StreamEvents, wire.AllEvents, c.EventBytes, c.EventAge),
			log(wire.StreamDLQ, wire.AllDLQ, c.LetterBytes, c.LetterAge),
		},
		Buckets: []bus.Bucket{
			{Name: wire.BucketJobs, BytesMax: c.JobBytes, ValueBytesMax: bytesize.MiB},
			{Name: wire.BucketNodes, BytesMax: nodeBytes, ValueBytesMax: bytesize.MiB},
			{Name: wire.BucketLead, BytesMax: leadBytes, ValueBytesMax: 4 * bytesize.KiB},
		},
		Objects: []bus.ObjectBucket{{Name: wire.ObjectsSlices, BytesMax: c.SliceBytes}},
	}
	tenants, _ := c.tenants() // names were checked by Validate
	for _, tenant := range tenants {
		t.Objects = append(t.Objects,
			bus.ObjectBucket{Name: wire.ObjectsIn(tenant), BytesMax: c.InputBytes},
			bus.ObjectBucket{Name: wire.ObjectsProofs(tenant), BytesMax: c.ProofBytes})
	}
	return t
}
