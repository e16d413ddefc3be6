package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/support"
	"github.com/proofrack/proofrack/shared/wire"
)

// Host is one worker process's hold on its host.
type Host struct {
	// Worker is what loops run on.
	attempt.Worker

	Spill *handoff.Spill
	Book  *agent.Book
	// Claim is the node's memory among that of other agents of the host; nil claims nothing.
	Claim    *agent.Claim
	Points   *hook.Points
	Flight   *flight.Recorder
	Instance string

	page   func() string // its metrics; nil for none
	config Config
	facts  *inventory.Host
	agent  atomic.Pointer[agent.Agent]
	kill   context.CancelFunc // ends the outbox
}

// Open opens everything. It waits for the bus and its buckets until ctx ends. Errors: kind Invalid for a configuration
// that cannot work; the context's.
func Open(ctx context.Context, config Config, facts *inventory.Host) (_ *Host, err error) {
	h := &Host{config: config, facts: facts, Instance: uuid.NewString(), kill: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if h.Points, err = hook.Parse(config.Test.Folder, config.Test.Hooks); err != nil {
		return nil, err
	}
	if h.Flight = config.Flight; h.Flight == nil {
		if h.Flight, err = Recorder(config.Role); err != nil {
			return nil, err
		}
	}
	h.Flight.Plant(func(class ledger.Class) bool { return h.Points.Leak(FlightPoint(class)) })
	if h.Spill, err = handoff.New(config.Spill.handoff(h.Points, h.Flight)); err != nil {
		return nil, err
	}
	if err = h.takeClaim(); err != nil {
		return nil, err
	}
	h.Book, err = agent.OpenBook(agent.BookConfig{
		Path: config.Spill.Path, Group: config.Spill.Group, Instance: h.Instance, Role: config.Role,
		Capacity: h.Capacity, Segments: h.Spill,
	})
	if err != nil {
		return nil, err
	}
	b, err := Wait(ctx, h, "connection to the bus", config.Connect)
	if err != nil {
		return nil, err
	}
	life, kill := context.WithCancel(context.WithoutCancel(ctx))
	h.kill = kill
	h.Worker = attempt.Worker{
		Config: config.Worker, Bus: b,
		Board: attempt.NewBoard(h.Poke), Gate: attempt.NewGate(h.Poke), Notes: attempt.NewGate(h.Poke),
		Outbox: attempt.NewOutbox(life, b, config.Worker, filepath.Join(config.Spill.Path, outboxFolder), config.Spill.Group,
			config.Log),
		Marks: attempt.NewMarks(filepath.Join(config.Spill.Path, marksFolder+config.Role), config.Spill.Group, config.Log),
		Node:  job.Node(config.Node), Build: config.Build, Log: config.Log, Finishes: config.Role == wire.RoleGPU,
		Tracer: config.Tracer,
	}
	records, err := Wait(ctx, h, "records of jobs", func(ctx context.Context) (bus.KV, error) {
		return b.KV(ctx, wire.BucketJobs)
	})
	if err != nil {
		return nil, err
	}
	h.Fences = attempt.NewFences(records, b.Connected, config.Worker.FenceMax)
	return h, h.Outbox.Resume(h.Node, h.Board)
}

// marksFolder and a role are where, in the spill folder, the role's processes mark what they are at work on.
const marksFolder = "work-"

// outboxFolder is where results are kept, in the spill folder, that could not be sent.
const outboxFolder = "outbox"

// Wait asks for something of the bus until it is there or ctx ends.
func Wait[T any](ctx context.Context, h *Host, what string, ask func(context.Context) (T, error)) (T, error) {
	pause := h.config.Worker.RetryMin
	for tries := 0; ; tries++ {
		got, err := ask(ctx)
		if err == nil {
			return got, nil
		}
		if kind := fault.KindOf(err); kind == fault.Invalid || ctx.Err() != nil {
			return got, fmt.Errorf("open %s: %w", what, err)
		}
		if tries == 0 {
			h.config.Log.Warn().Err(err).Str("what", what).Msg("waiting for the bus")
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, h.config.Worker.RetryMax)
	}
}

// Poke has a beat sent soon.
func (h *Host) Poke() {
	if a := h.agent.Load(); a != nil {
		a.Poke()
	}
}

// Run beats, obeys orders and serves until serve returns and all outcomes are sent. describe completes beats; other
// gets the orders that are not about attempts and draining.
func (h *Host) Run(
	ctx context.Context, c *service.Control, describe func(*wire.Beat), other func(*wire.Control),
	serve func(context.Context) error,
) error {
	speaker, err := agent.New(agent.Config{
		Node: h.Node, Build: h.Build, Book: h.Book, Spill: h.Spill, Describe: h.describe(c, describe), Publish: h.publish,
		Current: h.current, Heartbeat: h.Config.Heartbeat, SweepEvery: h.config.Spill.SweepEvery,
		LockEvery: min(time.Second, h.Config.Heartbeat), Logger: h.Log,
	})
	if err != nil {
		return err
	}
	h.agent.Store(speaker)
	record := support.Of(ctx)
	var wg sync.WaitGroup
	// It listens before anybody knows of it: orders are sent once.
	quiet, err := h.Obey(func(order *wire.Control) {
		switch {
		case order.Kind == wire.ControlReport:
			speaker.Poke()
		case order.Kind == wire.ControlTell:
			wg.Go(func() { h.tell(record, order.Diagnosis) })
		case other != nil:
			other(order)
		}
	})
	if err != nil {
		return fmt.Errorf("listen for orders: %w", err)
	}
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	wg.Go(func() {
		if err := speaker.Run(beating); err != nil {
			h.Log.Error().Err(err).Msg("agent ended")
		}
	})
	wg.Go(func() { h.sweepMarks(beating) })
	// Beats of the time while the bus was away are lost: coordinators hear of this worker as soon as they can.
	wg.Go(func() { attempt.Returned(beating, h.Bus, &h.Config, speaker.Poke) })
	wg.Go(func() { // who listens hears at once that it leaves
		select {
		case <-c.Stopping():
			speaker.Poke()
		case <-beating.Done():
		}
	})
	defer func() { stop(); wg.Wait() }()
	defer quiet()
	err = serve(ctx)
	h.empty(ctx, c)
	return err
}

// sweepMarks removes, at once and on a timer, what dead processes left and nobody wants any more.
func (h *Host) sweepMarks(ctx context.Context) {
	ticker := time.NewTicker(h.config.Spill.SweepEvery)
	defer ticker.Stop()
	for {
		if err := h.Marks.Sweep(ctx, h.current); err != nil && ctx.Err() == nil {
			h.Log.Warn().Err(err).Msg("cannot sweep marks of work")
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// empty waits until the outbox is empty: as long as nobody is in a hurry, then not much longer.
func (h *Host) empty(ctx context.Context, c *service.Control) {
	done := make(chan struct{})
	go func() { h.Outbox.Wait(); close(done) }()
	select {
	case <-done:
		return
	case <-ctx.Done():
	case <-c.HandingBack():
		select {
		case <-done:
			return
		case <-ctx.Done():
		case <-time.After(h.Config.SettleMax):
		}
	}
	h.kill()
	<-done
}

func (h *Host) describe(c *service.Control, complete func(*wire.Beat)) func() wire.Beat {
	return func() wire.Beat {
		var b wire.Beat
		b.State, b.Reason = h.State()
		if level, why := c.Level(); level > 0 {
			b.State, b.Reason = wire.StateDraining, wire.ReasonStopping+why
		}
		b.Running = h.Board.Running()
		b.AckWaitMS = max(10, min(h.Config.AckWait.Milliseconds(), wire.AckWaitMSMax))
		b.HeartbeatMS = max(1, min(h.Config.Heartbeat.Milliseconds(), wire.HeartbeatMSMax))
		h.Flight.Collect()
		b.Flight = append(b.Flight, h.Flight.Report())
		complete(&b)
		return b
	}
}

func (h *Host) publish(ctx context.Context, beat *wire.Beat) error {
	data, err := wire.Encode(beat)
	if err != nil {
		return err
	}
	return h.Bus.Send(ctx, bus.Message{Subject: wire.BeatSubject(h.Node), Data: data})
}

// current tells whether an attempt's fence is still the record's.
func (h *Host) current(ctx context.Context, a job.Attempt) (bool, error) {
	err := h.Fences.Check(ctx, a)
	if fault.KindOf(err) == fault.Lost {
		return false, nil
	}
	return err == nil, err
}

// Capacity is what may be booked on the host, by pool.
func (h *Host) Capacity() (ledger.Amounts, error) {
	memory, err := h.facts.Memory(h.config.Memory.Margin)
	if err != nil {
		return nil, fmt.Errorf("capacity: %w", errPool(err))
	}
	ram, err := h.ramShare(&memory)
	if err != nil {
		return nil, fmt.Errorf("capacity: %w", errPool(err))
	}
	capacity := ledger.Amounts{ledger.PoolRAM: ram}
	capacity[ledger.PoolPinned] = capacity[ledger.PoolRAM]
	usage, err := h.Spill.Usage()
	if err != nil {
		return nil, fmt.Errorf("capacity: %w", errPool(err))
	}
	for _, u := range usage {
		pool, bound := ledger.PoolSHM, h.config.Memory.SHMMax
		if u.Kind == handoff.Disk {
			pool, bound = ledger.PoolDisk, 0
		}
		capacity[pool] = least(max(0, u.CapacityBytes-u.ForeignBytes), bound)
	}
	devices, err := h.Devices()
	if err != nil {
		return nil, fmt.Errorf("capacity: %w", errPool(err))
	}
	for _, d := range devices {
		if d.Memory > 0 {
			capacity[ledger.PoolVRAM(d.Device)] = d.Memory
		}
	}
	return capacity, nil
}

func least(there, bound bytesize.Bytes) bytesize.Bytes {
	if bound > 0 {
		return min(there, bound)
	}
	return there
}

// Close closes everything that was opened; what is still booked counts as a dead worker's from then on.
func (h *Host) Close() error {
	var errs []error
	h.kill()
	if h.Bus != nil {
		h.Bus.Close()
	}
	if h.Book != nil {
		errs = append(errs, h.Book.Close())
	}
	errs = append(errs, h.Claim.Close())
	if h.Spill != nil {
		errs = append(errs, h.Spill.Close())
	}
	return errors.Join(errs...)
}
