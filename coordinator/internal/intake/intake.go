package intake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// Slices is where slices and public inputs are kept.
type Slices interface {
	// Put stores an object and tells its size and digest.
	Put(ctx context.Context, name string, data []byte) (job.Object, error)
	Delete(ctx context.Context, name string) error
}

// Inputs is where clients put their inputs.
type Inputs interface {
	// Open reads an object of a tenant. It fails with fault.NotFound when there is none.
	Open(ctx context.Context, tenant job.Tenant, name string) (io.ReadCloser, error)
}

// Records is where jobs are kept.
type Records interface {
	// Find is the job that a key stands for now: live or done, or nil.
	Find(ctx context.Context, tenant job.Tenant, key string) (*job.Record, error)
	// Create stores a record and its key entry. When the key stands for a job already, it stores nothing and gives that
	// one: existing is set.
	Create(ctx context.Context, r *job.Record) (existing *job.Record, err error)
	// LiveCount is how many of a tenant's jobs have not ended.
	LiveCount(tenant job.Tenant) int
	// Room is nil while so many bytes of slices and public inputs fit into what is the tenant's beside those of its jobs
	// that have not ended; else fault.Exhausted with the numbers.
	Room(tenant job.Tenant, bytes int64) error
}

// Gate says whether jobs are taken now.
type Gate interface {
	// Open is nil, or fault.Transient or fault.Exhausted with the reason, or fault.NotFound where there is no such tenant.
	Open(tenant job.Tenant) error
	// Fits tells whether some node could ever hold a partition of the circuit; if not, it is fault.Exhausted with both
	// numbers. It is nil while no node is known.
	Fits(circuitID string) error
	// FitsQuota tells whether what a tenant may have in flight could ever hold a partition of the circuit; if not, it is
	// fault.Exhausted with both numbers. It is nil while no node says what a partition takes.
	FitsQuota(tenant job.Tenant, circuitID string) error
	// Verifiable tells whether proofs of the circuit can be verified here; if not, it is fault.Transient: what is missing
	// may come.
	Verifiable(ctx context.Context, circuitID string) error
}

// Intake accepts jobs.
type Intake struct {
	config  Config
	slices  Slices
	inputs  Inputs
	records Records
	gate    Gate
	now     func() time.Time
	limits  *limits
	fetch   *fetcher
}

// New makes an intake. The config must be valid.
func New(config Config, slices Slices, inputs Inputs, records Records, gate Gate, now func() time.Time) *Intake {
	return &Intake{
		config: config, slices: slices, inputs: inputs, records: records, gate: gate, now: now,
		limits: newLimits(config), fetch: newFetcher(config),
	}
}

// Submit answers one request of a tenant. Refusals are typed faults; nothing of a refused request stays stored.
func (in *Intake) Submit(ctx context.Context, tenant job.Tenant, request *wire.Submit) *wire.SubmitReply {
	ctx, cancel := context.WithTimeoutCause(ctx, in.config.CheckTimeout, errTimeout)
	defer cancel()
	reply, err := in.submit(ctx, tenant, request)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errTimeout) && !errors.Is(err, errTimeout) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return &wire.SubmitReply{Reply: wire.Reply{Fault: fault.ReportOf("intake", err)}}
	}
	return reply
}

var errTimeout = fault.WithHint(fault.New(fault.Transient, "the request took too long"),
	"submit again; see check_timeout of the coordinator")

func (in *Intake) submit(ctx context.Context, tenant job.Tenant, request *wire.Submit) (*wire.SubmitReply, error) {
	if request.Tenant != "" && request.Tenant != tenant {
		return nil, fault.New(fault.Invalid, "request of tenant %s names tenant %s", tenant, request.Tenant)
	}
	if err := in.gate.Open(tenant); err != nil {
		return nil, err
	}
	answered, err := in.limits.allow(tenant, in.now())
	if err != nil {
		return nil, err
	}
	defer answered()
	if live := in.records.LiveCount(tenant); in.config.LiveJobsMax > 0 && live >= in.config.LiveJobsMax {
		return nil, fault.WithHint(fault.New(fault.Exhausted, "tenant %s has %d jobs that have not ended, the limit is %d",
			tenant, live, in.config.LiveJobsMax), "submit again when some have ended")
	}
	done, err := in.limits.book(tenant, sizeOf(request))
	if err != nil {
		return nil, err
	}
	defer done()
	telemetry.PathOf(ctx).Enter(telemetry.SpanCheckInput)
	input, err := in.read(ctx, tenant, request)
	if err != nil {
		return nil, err
	}
	if input.ForAggregation() && request.Output != job.OutputPartitions {
		return nil, fault.WithHint(fault.New(fault.Invalid,
			"the proof is non-interactive: the chain takes its %d partitions only aggregated, and there is no aggregator yet",
			input.PartitionCount()), `ask for output "partitions" to get them in order, as input for aggregation`)
	}
	if err := in.gate.Fits(input.Circuit().ID()); err != nil && !request.WaitForNode {
		return nil, err
	}
	if err := in.gate.FitsQuota(tenant, input.Circuit().ID()); err != nil {
		return nil, err
	}
	if err := in.gate.Verifiable(ctx, input.Circuit().ID()); err != nil {
		return nil, err
	}
	return in.accept(ctx, tenant, request, input)
}

// read opens the request's source, and parses and checks all of it.
func (in *Intake) read(ctx context.Context, tenant job.Tenant, request *wire.Submit) (circuit.Input, error) {
	kind, err := catalog.FindKind(request.Kind)
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	miner, err := sdr.ParseMiner(request.Miner)
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	source, digest, err := in.open(ctx, tenant, request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }()
	size := sizeOf(request)
	checked := &checkedReader{ctx: ctx, r: source, left: size, hash: sha256.New()}
	turn := &turnReader{
		ctx: ctx, turns: in.limits.turns, tenant: tenant, source: checked, buffer: make([]byte, min(size+1, aheadBytes)),
	}
	if err := turn.fill(); err != nil {
		return nil, err
	}
	defer turn.end()
	input, err := kind.Open(ctx, turn, circuit.Claim{ProverID: sdr.ProverID(miner), SectorNumber: request.SectorNumber})
	if checked.err != nil {
		return nil, fmt.Errorf("read input: %w", checked.err)
	}
	if err == nil || digest != "" {
		// A wrong digest explains any other refusal, so it is looked at first.
		if _, drained := io.Copy(io.Discard, turn); drained != nil {
			return nil, fmt.Errorf("read input: %w", drained)
		}
	}
	if got := hex.EncodeToString(checked.hash.Sum(nil)); digest != "" && got != digest {
		return nil, fault.WithHint(fault.New(fault.Corrupt, "input has SHA-256 %s, the request says %s", got, digest),
			"upload the input again")
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("check input: %w", ctx.Err())
		}
		return nil, fault.As(fault.Invalid, fmt.Errorf("input is refused: %w", err))
	}
	return input, nil
}

func sizeOf(request *wire.Submit) int64 {
	switch {
	case len(request.Inline) > 0:
		return int64(len(request.Inline))
	case request.Object != nil && request.Object.Bytes > 0:
		return min(request.Object.Bytes, wire.ReferenceBytesMax)
	}
	return wire.ReferenceBytesMax
}

func (in *Intake) open(ctx context.Context, tenant job.Tenant, request *wire.Submit) (io.ReadCloser, string, error) {
	switch {
	case len(request.Inline) > 0:
		return io.NopCloser(bytes.NewReader(request.Inline)), "", nil
	case request.Object != nil:
		r, err := in.inputs.Open(ctx, tenant, request.Object.Name)
		return r, request.Object.SHA256, err
	case request.Path != "":
		r, err := in.fetch.path(request.Path)
		return r, request.SHA256, err
	}
	r, err := in.fetch.url(ctx, request.URL)
	return r, request.SHA256, err
}

// accept stores slices, public inputs and record.
func (in *Intake) accept(
	ctx context.Context, tenant job.Tenant, request *wire.Submit, input circuit.Input,
) (*wire.SubmitReply, error) {
	record, err := in.record(tenant, request, input)
	if err != nil {
		return nil, err
	}
	telemetry.PathOf(ctx).About(telemetry.JobFacts(record)...)
	telemetry.PathOf(ctx).Enter(telemetry.SpanStoreInput)
	if existing, err := in.records.Find(ctx, tenant, request.Key); err != nil {
		return nil, err
	} else if existing != nil {
		return same(existing, record, input)
	}
	storing := in.limits.storing(tenant)
	defer storing.end()
	if err := in.store(ctx, record, input, storing); err != nil {
		return nil, errors.Join(err, in.undo(ctx, record))
	}
	existing, err := in.records.Create(ctx, record)
	if err != nil && mayBeStored(err) {
		return nil, err // if the record is not there after all, the slices are swept
	}
	if err != nil {
		return nil, errors.Join(err, in.undo(ctx, record))
	}
	if existing != nil {
		if err := in.undo(ctx, record); err != nil {
			return nil, err
		}
		return same(existing, record, input)
	}
	return &wire.SubmitReply{Job: record.ID, State: record.State, Warnings: input.Warnings()}, nil
}

// mayBeStored tells whether a write that failed may have been done: only a refusal says that it was not.
func mayBeStored(err error) bool {
	switch fault.KindOf(err) {
	case fault.Invalid, fault.Conflict, fault.Exhausted:
		return false
	case fault.Transient, fault.Cancelled, fault.Internal, fault.Corrupt, fault.Device, fault.NotFound, fault.Lost:
	}
	return true
}

// same answers a request whose key stands for a job already (invariant 7).
func same(existing, wanted *job.Record, input circuit.Input) (*wire.SubmitReply, error) {
	if existing.InputHash != wanted.InputHash || existing.Output != wanted.Output {
		return nil, fault.WithHint(fault.New(fault.Conflict, "key %q stands for job %s, which has other input",
			wanted.Key, existing.ID), "use another key, or the same input and output")
	}
	return &wire.SubmitReply{Job: existing.ID, Existing: true, State: existing.State, Warnings: input.Warnings()}, nil
}

func (in *Intake) record(tenant job.Tenant, request *wire.Submit, input circuit.Input) (*job.Record, error) {
	id, err := job.NewID()
	if err != nil {
		return nil, err
	}
	kind, err := catalog.FindKind(request.Kind)
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	miner, err := sdr.ParseMiner(request.Miner)
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	proverID, hash, now := sdr.ProverID(miner), input.Hash(), in.now().UTC()
	output := request.Output
	if output == "" {
		output = job.OutputProof
	}
	if request.Deadline != nil && !request.Deadline.After(now) {
		return nil, fault.New(fault.Invalid, "deadline %s has passed", request.Deadline.UTC().Format(time.RFC3339))
	}
	count := input.PartitionCount()
	if count < 1 || count > job.PartitionsMax {
		return nil, fault.New(fault.Invalid, "input has %d partitions, 1 to %d are possible", count, job.PartitionsMax)
	}
	r := &job.Record{
		Version: job.RecordVersion, ID: id, Tenant: tenant, Key: request.Key, InputHash: hex.EncodeToString(hash[:]),
		Kind: kind.Name(), Circuit: input.Circuit().ID(), ProverID: hex.EncodeToString(proverID[:]),
		Miner: fmt.Sprintf("f0%d", miner), SectorNumber: input.SectorNumber(), Output: output,
		Priority: request.Priority, Deadline: request.Deadline, WaitForNode: request.WaitForNode,
		TraceParent: request.TraceParent, SubmittedAt: now, State: job.Active,
	}
	for range count {
		r.Partitions = append(r.Partitions, job.Partition{Stage: job.Waiting, StageAt: now})
	}
	return r, nil
}

// store writes the slices and the public inputs, and names them in the record.
func (in *Intake) store(ctx context.Context, r *job.Record, input circuit.Input, storing *storing) error {
	var public []byte
	var err error
	for partition := range r.Partitions {
		slice, err := input.Slice(partition)
		if err != nil {
			return fmt.Errorf("cut slice %d of job %s: %w", partition, r.ID, err)
		}
		if err := in.records.Room(r.Tenant, storing.add(len(slice))); err != nil {
			return err
		}
		if r.Partitions[partition].Slice, err = in.slices.Put(ctx, wire.SliceName(r.ID, partition), slice); err != nil {
			return fmt.Errorf("store slice %d of job %s: %w", partition, r.ID, err)
		}
		inputs, err := input.PublicInputs(partition)
		if err != nil {
			return fmt.Errorf("derive public inputs of partition %d of job %s: %w", partition, r.ID, err)
		}
		public = wire.AppendPublicInputs(public, inputs)
	}
	if err := in.records.Room(r.Tenant, storing.add(len(public))); err != nil {
		return err
	}
	if r.Inputs, err = in.slices.Put(ctx, wire.InputsName(r.ID), public); err != nil {
		return fmt.Errorf("store public inputs of job %s: %w", r.ID, err)
	}
	return nil
}

// undo removes what store wrote. What it can't remove is swept later: it has no record.
func (in *Intake) undo(ctx context.Context, r *job.Record) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	var all []error
	for partition := range r.Partitions {
		if r.Partitions[partition].Slice.Name != "" {
			all = append(all, in.slices.Delete(ctx, r.Partitions[partition].Slice.Name))
		}
	}
	if r.Inputs.Name != "" {
		all = append(all, in.slices.Delete(ctx, r.Inputs.Name))
	}
	return errors.Join(all...)
}

const undoTimeout = 10 * time.Second
