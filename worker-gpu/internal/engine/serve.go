package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/prover"
	"github.com/proofrack/proofrack/shared/prover/simdevice"
	"github.com/proofrack/proofrack/worker-gpu/internal/cudadevice"
	"github.com/proofrack/proofrack/worker-gpu/internal/residency"
)

// socketFD is the engine's end of the socket pair: the first file behind the standard three.
const socketFD = 3

// requestsMax bounds what an engine does at once.
const requestsMax = 64

// beatEvery is how often progress is sent when no stage begins.
const beatEvery = time.Second

// PointMidProof is the hook in the middle of a proof: the quotient is done, its sum has begun.
const PointMidProof = "gpu.mid-proof"

// Main is the whole life of an engine process; it returns the process's exit code.
func Main() int {
	c, err := newConn(os.NewFile(socketFD, "engine"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		return 2
	}
	if err := serve(context.Background(), c); err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		return 1
	}
	return 0
}

// server is an engine's state.
type server struct {
	conn   *conn
	setup  Setup
	device prover.Device
	set    *residency.Set
	points *hook.Points
	slots  chan struct{}
	steps  atomic.Uint64
	stage  atomic.Value // string

	flight  *flight.Recorder
	vectors atomic.Uint64 // that were tracked, ever
	sums    *sums

	deviceMu sync.RWMutex // held for writing while the device is closed and opened again
	mu       sync.Mutex
	proofs   map[uint64]*proof
	released time.Time // when the device was last free for another start
	loading  *Loading  // the load that goes on
}

// proof is a prepared or started one. Its fields are set once, under the server's lock.
type proof struct {
	cancel  context.CancelFunc
	ctx     context.Context
	attempt job.Attempt
	source  prover.Source
	params  prover.Params
	pending prover.Pending
	mapped  *handoff.Segment
	release func()
	idle    time.Duration // of the device before its start, since it was last released
	active  atomic.Int32  // calls that use it
	dropped bool
	gone    chan struct{} // closed when the segment is unmapped
}

// serve answers until the worker closes its end.
func serve(ctx context.Context, c *conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &server{conn: c, slots: make(chan struct{}, requestsMax), proofs: map[uint64]*proof{}}
	s.stage.Store("")
	var first request
	if _, err := c.receive(&first); err != nil {
		return err
	}
	if first.Do != verbSetup || first.Setup == nil {
		return fault.New(fault.Internal, "engine's first request is %q", first.Do)
	}
	if err := s.prepare(*first.Setup); err != nil {
		return errors.Join(err, c.send(answer{ID: first.ID, Fault: fault.ReportOf("prove", err)}, nil))
	}
	ready := &Ready{Device: s.device.Name(), PID: os.Getpid(), Progress: s.progress()}
	if err := c.send(answer{ID: first.ID, Ready: ready}, nil); err != nil {
		return err
	}
	go s.beat(ctx)
	for {
		var r request
		file, err := c.receive(&r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case s.slots <- struct{}{}:
		default:
			return fault.New(fault.Internal, "more than %d requests at once", requestsMax)
		}
		if r.Do == verbPrepare { // before anything that may name it, such as its drop
			s.register(r.ID)
		}
		go func() {
			defer func() { <-s.slots }()
			s.answer(ctx, &r, file)
		}()
	}
}

// prepare makes the device.
func (s *server) prepare(setup Setup) error {
	s.setup = setup
	if setup.Workers < 1 {
		s.setup.Workers = runtime.GOMAXPROCS(0)
	}
	var err error
	if s.points, err = hook.Parse(setup.HookFolder, setup.Hooks); err != nil {
		return err
	}
	if err := s.record(); err != nil {
		return err
	}
	s.set = residency.New(residency.Config{
		Params: setup.Params, Cache: setup.Cache, Workers: s.setup.Workers, Find: catalog.Find, Progress: s.noteLoading,
		Flight: s.flight,
	})
	s.device, err = s.openDevice(s.setup.Simulate)
	return err
}

func (s *server) openDevice(simulate *simdevice.Config) (prover.Device, error) {
	var device prover.Device
	switch s.setup.Device {
	case "cpu":
		device = prover.NewCPU(prover.CPUConfig{Workers: s.setup.Workers, Observe: s.observe, Track: s.track})
	case "cuda":
		opened, err := cudadevice.Open(cudadevice.Config{
			Library: s.setup.Library, UUID: s.setup.UUID, MemoryBytes: s.setup.MemoryBytes, Workers: s.setup.Workers,
			Observe: s.observe,
		})
		if err != nil {
			return nil, err
		}
		device = opened
	default:
		return nil, fault.New(fault.Device, "this build has no engine for devices of kind %q", s.setup.Device)
	}
	if simulate == nil {
		return device, nil
	}
	return simdevice.New(device, *simulate)
}

// observe counts a stage and shows it.
func (s *server) observe(stage groth16.Stage) func() {
	s.step(string(stage))
	if stage == groth16.StageH {
		s.points.Hit(context.Background(), PointMidProof)
	}
	return func() {}
}

func (s *server) step(stage string) {
	s.stage.Store(stage)
	s.steps.Add(1)
	s.report()
}

func (s *server) beat(ctx context.Context) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.flight.Collect()
			s.report()
		}
	}
}

// report sends the present progress. A worker that is gone is noticed by who reads.
func (s *server) report() {
	p := s.progress()
	_ = s.conn.send(answer{Progress: &p}, nil)
}

func (s *server) progress() Progress {
	report := s.flight.Report()
	p := Progress{Steps: s.steps.Load(), Stage: s.stage.Load().(string), CPU: processorTime(), Flight: &report}
	s.deviceMu.RLock()
	if m, ok := s.device.(interface {
		DeviceMemory() (free, total bytesize.Bytes)
	}); ok {
		p.Free, p.Total = m.DeviceMemory()
	}
	s.deviceMu.RUnlock()
	s.mu.Lock()
	p.Loading = s.loading
	s.mu.Unlock()
	return p
}

func processorTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// answer does what is asked. An answer that cannot be sent has no reader: the loop in serve ends then.
func (s *server) answer(ctx context.Context, r *request, file *os.File) {
	if file != nil && r.Do != verbPrepare {
		defer file.Close()
	}
	a := answer{ID: r.ID}
	var err error
	switch r.Do {
	case verbLoad:
		a.Loaded, err = s.load(ctx, r.Circuit, file)
	case verbImage:
		err = s.writeImage(ctx, r.Circuit, file)
	case verbPrepare:
		err = s.prepareProof(r, file)
	case verbStart:
		err = s.start(r.Proof)
	case verbFinish:
		a.Proved, err = s.finish(r.Proof)
	case verbDrop:
		s.drop(r.Proof)
	case verbEvict:
		err = s.evict(r.Circuit)
	case verbCanary:
		err = s.canary(ctx)
	case verbSetup:
		err = fault.New(fault.Internal, "engine is set up already")
	default:
		err = fault.New(fault.Internal, "engine is asked to %q", r.Do)
	}
	if err != nil {
		a.Fault = fault.ReportOf("prove", classify(err))
	}
	_ = s.conn.send(a, nil)
}

// classify gives errors of provers and segments, which know no kinds, theirs.
func classify(err error) error {
	var known fault.Classified
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, compact.ErrCorrupt):
		return fault.As(fault.Corrupt, err)
	case errors.Is(err, prover.ErrMismatch):
		return fault.As(fault.Invalid, err)
	case errors.Is(err, prover.ErrProof):
		return fault.As(fault.Device, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return fault.As(fault.Device, err)
}
