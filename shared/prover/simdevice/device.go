package simdevice

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/prover"
)

// Errors of a simulated device; all are of kind fault.Device.
var (
	// ErrMemory: the device's memory does not suffice.
	ErrMemory = fault.New(fault.Device, "out of device memory")
	// ErrLost: the device has fallen off its bus.
	ErrLost = fault.New(fault.Device, "device is lost")
	// ErrOrdered: a failure without a special cause was ordered.
	ErrOrdered = fault.New(fault.Device, "simulated failure")
)

// Device is a simulated device. Its methods may be called from several goroutines.
type Device struct {
	inner    prover.Device
	config   Config
	failures []failure

	mu       sync.Mutex
	jobs     int // started
	finished int
	used     bytesize.Bytes
	leaked   bytesize.Bytes
}

// New wraps a device, which it closes when it is closed.
func New(inner prover.Device, config Config) (*Device, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	d := &Device{inner: inner, config: config, jobs: config.JobsBefore, finished: config.JobsBefore}
	for _, text := range config.Failures {
		f, err := parseFailure(text)
		if err != nil {
			return nil, err
		}
		d.failures = append(d.failures, f)
	}
	return d, nil
}

// Name is "sim-" and the inner device's.
func (d *Device) Name() string { return "sim-" + d.inner.Name() }

// Memory is the inner device's, with what a job takes on the simulated one.
func (d *Device) Memory(totals r1cs.Position) prover.MemoryProfile {
	m := d.inner.Memory(totals)
	if d.config.JobBytes > 0 {
		m.DeviceBytes = int64(d.config.JobBytes)
	}
	return m
}

// DeviceMemory is what is free of the device's memory, and all of it; both are 0 without a limit.
func (d *Device) DeviceMemory() (free, total bytesize.Bytes) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.config.MemoryBytes - d.used - d.leaked, d.config.MemoryBytes
}

// Close closes the inner device.
func (d *Device) Close() error { return d.inner.Close() }

// Start takes the job's memory, fails if it is due, and starts the proof on the inner device.
func (d *Device) Start(ctx context.Context, s prover.Source, p prover.Params) (prover.Pending, error) {
	began := time.Now()
	need := bytesize.Bytes(d.Memory(s.Segment.Counts()).DeviceBytes)
	number, err := d.begin(need)
	if err != nil {
		return nil, err
	}
	if err := d.fail(stageStart, number, need); err != nil {
		d.end(need)
		return nil, err
	}
	pending, err := d.inner.Start(ctx, s, p)
	if err == nil {
		err = atLeast(ctx, began, d.config.StartTime)
	}
	if err != nil {
		d.end(need)
		return nil, err
	}
	return &pendingProof{Pending: pending, device: d, number: number, need: need}, nil
}

func (d *Device) begin(need bytesize.Bytes) (number int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.lost(); err != nil {
		return 0, err
	}
	d.jobs++
	if free := d.config.MemoryBytes - d.used - d.leaked; d.config.MemoryBytes > 0 && need > free {
		return 0, outOfMemory(need, free)
	}
	d.used += need
	return d.jobs, nil
}

func outOfMemory(need, have bytesize.Bytes) error {
	return fmt.Errorf("%w: need %d bytes, have %d", ErrMemory, need, have)
}

// end gives a job's memory back, but for the leak.
func (d *Device) end(need bytesize.Bytes) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used -= need
	d.leaked += need * bytesize.Bytes(d.config.LeakPercent) / 100
}

func (d *Device) lost() error {
	if d.config.LostAt != nil && !time.Now().Before(*d.config.LostAt) {
		return ErrLost
	}
	return nil
}

// fail does what is due for a job.
func (d *Device) fail(stage string, number int, need bytesize.Bytes) error {
	if err := d.lost(); err != nil {
		return err
	}
	for _, f := range d.failures {
		if f.due(stage, number) {
			return d.carryOut(f, number, need)
		}
	}
	return nil
}

func signalOf(how string) syscall.Signal {
	switch how {
	case "freeze":
		return syscall.SIGSTOP
	case "kill":
		return syscall.SIGKILL
	case "abort":
		return syscall.SIGABRT
	case "segv":
		return syscall.SIGSEGV
	case "bus":
		return syscall.SIGBUS
	}
	panic("simdevice: no failure " + how) // parseFailure lets no other pass
}

func (d *Device) carryOut(f failure, number int, need bytesize.Bytes) error {
	switch f.how {
	case "oom":
		free, _ := d.DeviceMemory()
		return outOfMemory(need, free)
	case "error":
		return fmt.Errorf("%w of job %d", ErrOrdered, number)
	case "panic":
		panic(fmt.Sprintf("simdevice: ordered panic in job %d", number))
	case "loop":
		select {} // the endless wait of a hung device; the processor stays free for whoever shares it
	}
	if err := syscall.Kill(os.Getpid(), signalOf(f.how)); err != nil {
		return fmt.Errorf("send %s: %w", f.how, err)
	}
	if f.how != "freeze" {
		select {} // the signal is on its way
	}
	return nil
}

// pendingProof is a proof on a simulated device.
type pendingProof struct {
	prover.Pending

	device *Device
	number int
	need   bytesize.Bytes
	once   sync.Once
}

// Finish fails if it is due, finishes the proof and flips a bit of it if its turn has come.
func (w *pendingProof) Finish(ctx context.Context) (*groth16.Proof, error) {
	began := time.Now()
	defer w.once.Do(func() { w.device.end(w.need) })
	if err := w.device.fail(stageFinish, w.number, w.need); err != nil {
		_, dropErr := w.Pending.Finish(cancelled())
		if errors.Is(dropErr, context.Canceled) {
			dropErr = nil
		}
		return nil, errors.Join(err, dropErr)
	}
	proof, err := w.Pending.Finish(ctx)
	if err == nil {
		err = atLeast(ctx, began, w.device.config.FinishTime)
	}
	if err != nil {
		return nil, err
	}
	return w.device.flip(proof)
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// flip exchanges A of every n-th proof by another point of the group: flipping its sign bit is the one-bit change that
// still is a proof in form.
func (d *Device) flip(proof *groth16.Proof) (*groth16.Proof, error) {
	d.mu.Lock()
	d.finished++
	due := d.config.FlipEvery > 0 && d.finished%d.config.FlipEvery == 0
	d.mu.Unlock()
	if !due {
		return proof, nil
	}
	data := proof.Bytes()
	const signBit = 0x20
	data[0] ^= signBit
	return groth16.ParseProof(data[:])
}

// atLeast waits until so much time has passed since began.
func atLeast(ctx context.Context, began time.Time, least time.Duration) error {
	rest := least - time.Since(began)
	if rest <= 0 {
		return nil
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
