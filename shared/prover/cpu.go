package prover

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// CPUConfig tunes a CPU device. The zero value is ready to use.
type CPUConfig struct {
	// Workers is the number of goroutines that compute; 0 means GOMAXPROCS.
	Workers int
	// Observe, when set, is told when a stage begins; the function that it gives is called when the stage ends. Calls
	// do not overlap.
	Observe func(groth16.Stage) (end func())
	// Track, when set, is told of each vector that is kept between proofs, by its bytes. The functions that it gives are
	// called when the vector is not needed any more, and when the system has its memory back.
	Track func(bytes int64) (released, gone func())
	// Options go to package groth16 as they are. Tests fix the random scalars by them; production leaves them empty.
	Options []groth16.Option
}

// CPU proves on the processor. It keeps the tables and vectors of the circuit it proved last. Proofs may be pending
// while others start, but each stage has all workers: calls take turns.
type CPU struct {
	config CPUConfig
	turn   chan struct{} // holds a token while the device is free

	// The rest belongs to who has the token.
	params Params
	prover *groth16.Prover
	key    *groth16.PreparedKey
	watch  *Stopwatch // of the proof whose turn it is
	closed bool
}

// NewCPU makes a device. It allocates nothing of size before the first proof.
func NewCPU(config CPUConfig) *CPU {
	if config.Workers < 1 {
		config.Workers = runtime.GOMAXPROCS(0)
	}
	d := &CPU{config: config, turn: make(chan struct{}, 1)}
	d.turn <- struct{}{}
	return d
}

// Name is "cpu".
func (d *CPU) Name() string { return "cpu" }

// What the sums take beside the vectors: buckets, points and scalars that wait, and what each worker has.
const (
	sumBytes       = 768 << 20
	workerBytes    = 8 << 20
	pendingBytes   = 4 << 10
	vectorsOfProof = 2
	elementBytes   = 32
)

// Memory counts two vectors of the domain's size and what a sum takes at most.
func (d *CPU) Memory(totals r1cs.Position) MemoryProfile {
	return MemoryProfile{
		SharedBytes:  vectorsOfProof * elementBytes << totals.DomainBits(),
		PendingBytes: pendingBytes,
		WorkingBytes: sumBytes + workerBytes*int64(d.config.Workers),
	}
}

// acquire waits for the device; release must follow.
func (d *CPU) acquire(ctx context.Context, watch *Stopwatch) error {
	select {
	case <-d.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	if d.closed {
		d.release()
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		d.release()
		return err
	}
	d.watch = watch
	return nil
}

func (d *CPU) release() {
	d.watch = nil
	d.turn <- struct{}{}
}

// observe books the time of a stage to the proof whose turn it is.
func (d *CPU) observe(stage groth16.Stage) func() {
	end := d.watch.Timed(func(t *Timings) *time.Duration { return t.of(stage) })
	if d.config.Observe == nil {
		return end
	}
	outer := d.config.Observe(stage)
	return func() { end(); outer() }
}

// use prepares for a circuit's parameters, unless they are those used last.
func (d *CPU) use(p Params) error {
	if d.prover != nil && d.params == p {
		return nil
	}
	d.drop()
	options := append([]groth16.Option{
		groth16.WithWorkers(d.config.Workers), groth16.WithObserver(d.observe), groth16.WithMemory(newMapped(d.config.Track)),
	}, d.config.Options...)
	prover, err := groth16.NewProver(p.SRS, p.Artifact, options...)
	if err != nil {
		return err
	}
	key, err := groth16.Prepare(p.SRS.Key)
	if err != nil {
		return err
	}
	d.params, d.prover, d.key = p, prover, key
	return nil
}

func (d *CPU) drop() {
	if d.prover != nil {
		d.prover.Close()
	}
	d.params, d.prover, d.key = Params{}, nil, nil
}

// Start computes the quotient and the sums in G1; see Device.
func (d *CPU) Start(ctx context.Context, s Source, p Params) (Pending, error) {
	wrap := func(err error) error {
		return fmt.Errorf("start proof of partition %d of circuit %s: %w",
			s.Segment.Partition(), s.Segment.CircuitID(), err)
	}
	if err := p.Check(s); err != nil {
		return nil, wrap(err)
	}
	w := &cpuPending{device: d, source: s}
	if err := d.acquire(ctx, &w.watch); err != nil {
		return nil, wrap(err)
	}
	defer d.release()
	if err := d.use(p); err != nil {
		return nil, wrap(err)
	}
	partial, err := d.prover.Start(ctx, s.Segment)
	if err != nil {
		return nil, wrap(err)
	}
	w.partial, w.key = partial, d.key
	return w, nil
}

// Close waits for the stage in progress; see Device.
func (d *CPU) Close() error {
	<-d.turn
	d.closed = true
	d.drop()
	d.release()
	return nil
}

// cpuPending is a proof without its sum in G2.
type cpuPending struct {
	device  *CPU
	source  Source
	partial *groth16.Pending
	key     *groth16.PreparedKey

	finished atomic.Bool
	watch    Stopwatch
}

// Finish adds the sum in G2, assembles and verifies; see Pending.
func (w *cpuPending) Finish(ctx context.Context) (*groth16.Proof, error) {
	proof, err := w.finish(ctx)
	if err != nil {
		s := w.source.Segment
		return nil, fmt.Errorf("finish proof of partition %d of circuit %s: %w", s.Partition(), s.CircuitID(), err)
	}
	return proof, nil
}

func (w *cpuPending) finish(ctx context.Context) (*groth16.Proof, error) {
	if w.finished.Swap(true) {
		return nil, ErrFinished
	}
	d := w.device
	if err := d.acquire(ctx, &w.watch); err != nil {
		return nil, err
	}
	defer d.release()
	proof, err := w.partial.Finish(ctx)
	if err != nil {
		return nil, err
	}
	defer w.watch.Timed(func(t *Timings) *time.Duration { return &t.Verify })()
	return Verified(proof, w.key, w.source)
}

// Timings are the times so far; see Pending.
func (w *cpuPending) Timings() Timings { return w.watch.Read() }
