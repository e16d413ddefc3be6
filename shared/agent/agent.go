package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// Config is one worker process's part in speaking for its host.
type Config struct {
	// Node is the host's name. Required.
	Node job.Node
	// Build names the program's build.
	Build string
	// Book is the node's book, Spill its spill folders. Required; both stay open as long as the agent runs.
	Book  *Book
	Spill *handoff.Spill
	// Describe gives what the worker says about itself: state, slots, what runs, devices, circuits. The agent fills in who
	// sends it, versions, number and the host's report. Required.
	Describe func() wire.Beat
	// Publish sends a beat; it may be lost. Required.
	Publish func(context.Context, *wire.Beat) error
	// Current tells whether an attempt's fence is still the one in its record, so that what a dead worker sealed goes when
	// nobody wants it. Nil means that all are.
	Current func(context.Context, job.Attempt) (bool, error)
	// Heartbeat is the time between beats, and how often dead workers are looked for. Default 5 s.
	Heartbeat time.Duration
	// SweepEvery is the time between sweeps of the spill folders. Default 30 s.
	SweepEvery time.Duration
	// LockEvery is how often a process that does not speak for the host tries to. Default 1 s.
	LockEvery time.Duration
	Logger    zerolog.Logger
}

func (c *Config) validate() error {
	if c.Heartbeat == 0 {
		c.Heartbeat = 5 * time.Second
	}
	if c.SweepEvery == 0 {
		c.SweepEvery = 30 * time.Second
	}
	if c.LockEvery == 0 {
		c.LockEvery = time.Second
	}
	var all []error
	if _, err := job.ParseNode(string(c.Node)); err != nil {
		all = append(all, err)
	}
	if c.Book == nil || c.Spill == nil || c.Describe == nil || c.Publish == nil {
		all = append(all, errors.New("book, spill, describe or publish is missing"))
	}
	if c.Heartbeat < 0 || c.SweepEvery < 0 || c.LockEvery < 0 {
		all = append(all, fmt.Errorf("times %s, %s, %s must not be negative", c.Heartbeat, c.SweepEvery, c.LockEvery))
	}
	return fault.As(fault.Invalid, errors.Join(all...))
}

// Agent sends a worker's beats and, in one process per host, the host's report with them. Run drives it; the other
// methods may be called from several goroutines.
type Agent struct {
	config Config
	poke   chan struct{}

	mu   sync.Mutex
	seq  uint64
	lock *HostLock // nil while another process speaks for the host
}

// New makes an agent; Run starts it.
func New(config Config) (*Agent, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("configure agent: %w", err)
	}
	return &Agent{config: config, poke: make(chan struct{}, 1)}, nil
}

// Run makes an agent and drives it until the context ends.
func Run(ctx context.Context, config Config) error {
	a, err := New(config)
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// Poke asks for a beat now: something changed.
func (a *Agent) Poke() {
	select {
	case a.poke <- struct{}{}:
	default: // one is due already
	}
}

// Speaks tells whether this process speaks for its host.
func (a *Agent) Speaks() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lock != nil
}

// Run sends beats, and sweeps and mends while this process speaks for the host, until the context ends. It is nil then.
func (a *Agent) Run(ctx context.Context) error {
	beats, sweeps, locks := time.NewTicker(a.config.Heartbeat), time.NewTicker(a.config.SweepEvery),
		time.NewTicker(a.config.LockEvery)
	defer beats.Stop()
	defer sweeps.Stop()
	defer locks.Stop()
	defer a.unlock()
	a.tryLock(ctx)
	for send := true; ; {
		if send {
			a.beat(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.poke:
			send = true
		case <-beats.C:
			a.clear(ctx)
			a.mend(ctx, nil)
			send = true
		case <-sweeps.C:
			send = a.sweep(ctx)
		case <-locks.C:
			send = a.tryLock(ctx)
		}
	}
}

// tryLock makes this process the one that speaks for the host, if none does, and cleans up after the last one.
func (a *Agent) tryLock(ctx context.Context) bool {
	if a.Speaks() {
		return false
	}
	lock, err := TryHostLock(a.config.Spill.Path(), a.config.Book.config.Group)
	if err != nil {
		a.config.Logger.Error().Err(err).Msg("cannot take host lock")
	}
	if lock == nil {
		return false
	}
	a.mu.Lock()
	a.lock = lock
	a.mu.Unlock()
	a.config.Logger.Info().Str("path", a.config.Spill.Path()).Msg("speaks for the host")
	a.sweep(ctx)
	return true
}

func (a *Agent) unlock() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lock == nil {
		return
	}
	if err := a.lock.Unlock(); err != nil {
		a.config.Logger.Error().Err(err).Msg("cannot let go of host lock")
	}
	a.lock = nil
}

// clear takes this worker's abandoned bookings out of the book, whether it speaks for the host or not.
func (a *Agent) clear(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, a.config.Heartbeat)
	defer cancel()
	gone, err := a.config.Book.removeAbandoned(ctx)
	if err != nil {
		a.config.Logger.Error().Err(err).Msg("cannot take an abandoned booking out of the book")
	}
	for _, attempt := range gone {
		a.config.Logger.Warn().Stringer("attempt", attempt).Msg("took an abandoned booking out of the book")
	}
}

// mend takes dead bookings out of the book and tells whether there were any. Neither the lock nor the records may hold
// up the beats for long.
func (a *Agent) mend(ctx context.Context, current func(context.Context, job.Attempt) (bool, error)) bool {
	if !a.Speaks() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, a.config.Heartbeat)
	defer cancel()
	mended, err := a.config.Book.Mend(ctx, within(a.config.Heartbeat/2, current))
	log := &a.config.Logger
	if err != nil {
		log.Error().Err(err).Msg("cannot mend the node's book")
	}
	for _, attempt := range mended.Removed {
		log.Warn().Stringer("attempt", attempt).Msg("took a dead worker's booking out of the book")
	}
	for _, attempt := range mended.HandedOver {
		log.Warn().Stringer("attempt", attempt).Msg("kept the sealed segment of a dead worker")
	}
	for _, attempt := range mended.Busy {
		log.Warn().Stringer("attempt", attempt).Msg("attempt is over, a process still holds its segment")
	}
	return mended.Changed()
}

// within asks until a time has passed, from then on every attempt is current.
func within(
	limit time.Duration, current func(context.Context, job.Attempt) (bool, error),
) func(context.Context, job.Attempt) (bool, error) {
	if current == nil {
		return nil
	}
	deadline := time.Now().Add(limit)
	return func(ctx context.Context, a job.Attempt) (bool, error) {
		if time.Now().After(deadline) {
			return true, nil
		}
		ctx, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		return current(ctx, a)
	}
}

// sweep mends the book, then removes segments without an owner; it tells whether anything changed.
func (a *Agent) sweep(ctx context.Context) bool {
	if !a.Speaks() {
		return false
	}
	changed := a.mend(ctx, a.config.Current)
	report, err := a.config.Spill.Sweep(ctx, a.config.Book.Booked)
	log := &a.config.Logger
	if err != nil {
		log.Error().Err(err).Msg("cannot sweep the spill folders")
	}
	for _, r := range report.Removed {
		log.Info().Str("segment", r.Name).Str("why", r.Why).Int64(telemetry.KeyBytes, int64(r.Bytes)).Msg("removed segment")
	}
	if report.HeldCount > 0 {
		log.Warn().Int("count", report.HeldCount).Int64(telemetry.KeyBytes, int64(report.HeldBytes)).
			Msg("segments without a booking are held by processes")
	}
	return changed || len(report.Removed) > 0
}

// beat sends one beat.
func (a *Agent) beat(ctx context.Context) {
	beat := a.config.Describe()
	owner := a.config.Book.owner
	beat.Node, beat.Build, beat.Role = a.config.Node, a.config.Build, owner.Role
	beat.Boot, beat.Instance = owner.Process.Boot, owner.Instance
	beat.WireMin, beat.WireMax = wire.VersionMin, wire.Version
	a.mu.Lock()
	a.seq++
	beat.Seq = a.seq
	a.mu.Unlock()
	if a.Speaks() {
		asking, done := context.WithTimeout(ctx, a.config.Heartbeat/2)
		host, err := a.Report(asking)
		done()
		if err != nil {
			a.config.Logger.Error().Err(err).Msg("cannot report what the host holds")
		}
		beat.Host = host
		files, err := a.config.Spill.Flight()
		if err != nil {
			a.config.Logger.Error().Err(err).Msg("cannot report the files of the spill folders")
		} else {
			beat.Flight = append(beat.Flight, files)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, a.config.Heartbeat)
	defer cancel()
	if err := a.config.Publish(ctx, &beat); err != nil && ctx.Err() == nil {
		a.config.Logger.Warn().Err(err).Msg("cannot send beat")
	}
}

// Report is what the host has and holds, by the book and the spill folders.
func (a *Agent) Report(ctx context.Context) (*wire.HostReport, error) {
	capacity, err := a.config.Book.capacity()
	if err != nil {
		return nil, err
	}
	listing, err := a.config.Book.List(ctx)
	if err != nil {
		return nil, err
	}
	free, err := a.config.Spill.FreeBytes()
	if err != nil {
		return nil, err
	}
	r := &wire.HostReport{
		Capacity: capacity, BookComplete: listing.Complete, Assets: listing.Assets, Freed: listing.Freed,
		FreeSHMBytes: free[handoff.SHM], FreeDiskBytes: free[handoff.Disk], At: time.Now(),
	}
	for _, e := range listing.Entries {
		r.Book = append(r.Book, wire.Booking{Attempt: e.Attempt, Amounts: e.Amounts, Stage: e.Stage, Alive: e.Alive})
	}
	return r, nil
}
