package cudadevice

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/proofrack/proofrack/cuda"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/prover"
)

// Config says which device, and how it is used.
type Config struct {
	// Library is where the device library is; see Find.
	Library string
	// UUID names the device; "" takes the only one there is.
	UUID string
	// MemoryBytes is the most that may be taken of the device's memory; 0 is no limit but its size.
	MemoryBytes bytesize.Bytes
	// Pending is how many proofs may be on the device at once; less than 1 means 2.
	Pending int
	// Workers is how many goroutines, or threads of the host-compiled library, compute; less than 1 means all cores.
	Workers int
	// Observe is as in prover.CPUConfig. The device's own stages cannot be told apart while they run: they are one,
	// StageQuotient.
	Observe func(groth16.Stage) (end func())
	// Options go to groth16.Assemble. Tests fix the random scalars by them; production leaves them empty.
	Options []groth16.Option
}

const pendingDefault = 2

// Device is a GPU behind the port. See prover.Device.
type Device struct {
	config  Config
	library *cuda.Library
	info    cuda.DeviceInfo
	host    bool // its memory is the host's

	starts chan struct{} // holds a token while nothing starts
	loaded *loaded       // of who has the token
	closed atomic.Bool

	mu     sync.RWMutex // of the rest
	device *cuda.Device // nil while no arena is taken
	arena  uint64       // bytes taken, and host memory pinned
	pinned uint64
	live   []*pending // that have a place on the device, oldest first
}

// Open finds a device. Its memory is not taken yet. Errors wrap cuda.ErrNoDevice, kind fault.Device.
func Open(config Config) (*Device, error) {
	library, devices, err := Devices(config.Library)
	if err != nil {
		return nil, err
	}
	if config.Pending < 1 {
		config.Pending = pendingDefault
	}
	if config.Observe == nil {
		config.Observe = func(groth16.Stage) func() { return func() {} }
	}
	d := &Device{config: config, library: library, host: library.Version().Host, starts: make(chan struct{}, 1)}
	for _, one := range devices {
		if one.UUID == config.UUID || config.UUID == "" && len(devices) == 1 {
			d.info = one
			d.starts <- struct{}{}
			return d, nil
		}
	}
	return nil, fault.As(fault.Device, fmt.Errorf("%w with UUID %q among %d", cuda.ErrNoDevice, config.UUID, len(devices)))
}

// Name is "cuda", or "cuda-host" for the host-compiled library.
func (d *Device) Name() string {
	if d.host {
		return "cuda-host"
	}
	return "cuda"
}

// What the host has for a proof beside the device, bytes.
const (
	pendingBytes = 4 << 10
	workingBytes = 64 << 20
)

// shapeOf is a circuit's shape with so many points in A and B.
func shapeOf(t r1cs.Position, a, b int) cuda.Shape {
	return cuda.Shape{
		Rows: t.Rows, Inputs: t.Inputs, Aux: t.Aux, FullA: t.FullA, FullB: t.FullB, FullAux: t.FullAux,
		H: 1<<t.DomainBits() - 1, L: t.Aux, A: a, B: b,
	}
}

// Memory is what the plan says for a circuit whose every variable occurs in A and B: no circuit of these totals takes
// more. It is what is needed, too, when that does not fit.
func (d *Device) Memory(totals r1cs.Position) prover.MemoryProfile {
	every := totals.Inputs + totals.Aux
	plan, err := d.library.Plan(shapeOf(totals, every, every), d.limit(), d.config.Pending)
	if err != nil && plan.PeakBytes == 0 {
		plan.PeakBytes = d.limit() + 1 // it cannot be planned: it does not fit
	}
	profile := prover.MemoryProfile{
		SharedBytes: int64(plan.PinnedBytes), PendingBytes: pendingBytes, WorkingBytes: workingBytes,
		DeviceBytes: int64(plan.PeakBytes),
	}
	if d.host {
		profile.SharedBytes, profile.DeviceBytes = profile.SharedBytes+profile.DeviceBytes, 0
	}
	return profile
}

// limit is the most that a plan may take.
func (d *Device) limit() uint64 {
	if d.config.MemoryBytes > 0 && uint64(d.config.MemoryBytes) < d.info.MemoryBytes {
		return uint64(d.config.MemoryBytes)
	}
	return d.info.MemoryBytes
}

// DeviceMemory is what is free of the device's memory, with what this device has taken, and all of it. Both are 0 where
// the memory is the host's.
func (d *Device) DeviceMemory() (free, total bytesize.Bytes) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.host {
		return 0, 0
	}
	if d.device == nil {
		return bytesize.Bytes(d.info.MemoryBytes), bytesize.Bytes(d.info.MemoryBytes)
	}
	m, err := d.device.Memory()
	if err != nil {
		return 0, 0
	}
	return bytesize.Bytes(m.FreeBytes + m.ArenaBytes), bytesize.Bytes(m.TotalBytes)
}

// acquire waits for the turn to start; release must follow.
func (d *Device) acquire(ctx context.Context) error {
	select {
	case <-d.starts:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := ctx.Err()
	if d.closed.Load() {
		err = prover.ErrClosed
	}
	if err != nil {
		d.release()
	}
	return err
}

func (d *Device) release() { d.starts <- struct{}{} }

// Start computes the quotient and the sums in G1; see prover.Device.
func (d *Device) Start(ctx context.Context, s prover.Source, p prover.Params) (prover.Pending, error) {
	w, err := d.start(ctx, s, p)
	if err != nil {
		return nil, fmt.Errorf("start proof of partition %d of circuit %s: %w",
			s.Segment.Partition(), s.Segment.CircuitID(), err)
	}
	return w, nil
}

func (d *Device) start(ctx context.Context, s prover.Source, p prover.Params) (*pending, error) {
	if err := p.Check(s); err != nil {
		return nil, err
	}
	if err := d.acquire(ctx); err != nil {
		return nil, err
	}
	defer d.release()
	if err := d.use(ctx, p); err != nil {
		return nil, err
	}
	w := newPending(d, s)
	if err := w.begin(ctx); err != nil {
		return nil, err
	}
	end := d.config.Observe(groth16.StageQuotient)
	err := w.run(ctx, func() error { return w.proof.Start(s.Segment.Data(), layoutOf(s.Segment)) })
	end()
	if err == nil {
		err = w.note()
	}
	if err != nil {
		return nil, w.give(err)
	}
	d.mu.Lock()
	d.live = append(d.live, w)
	d.mu.Unlock()
	return w, nil
}

// oldest is the proof that has been on the device for longest.
func (d *Device) oldest() *pending {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if len(d.live) == 0 {
		return nil
	}
	return d.live[0]
}

// Close waits for what runs; see prover.Device.
func (d *Device) Close() error {
	<-d.starts
	defer d.release()
	d.closed.Store(true)
	for w := d.oldest(); w != nil; w = d.oldest() {
		<-w.turn
		err := w.give(nil)
		w.turn <- struct{}{}
		if err != nil {
			return err
		}
	}
	if err := d.drop(); err != nil {
		return err
	}
	return d.takeArena(0, 0)
}
