package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/fault"
)

// Config bounds the waits of a Group. The init system has to wait longer than the last three together.
type Config struct {
	StartWithin    time.Duration `doc:"Longest time for one service to become ready."`
	DrainWithin    time.Duration `doc:"Longest time for running work to finish after SIGTERM; the rest is handed back."`
	HandBackWithin time.Duration `doc:"Longest time for handing running work back; then the process ends."`
	KillWithin     time.Duration `doc:"Longest wait for services that ignore the end of their contexts."`
}

// DefaultConfig is enough for a 32 GiB partition on a slow device to finish.
func DefaultConfig() Config {
	return Config{
		StartWithin: 10 * time.Minute, DrainWithin: 15 * time.Minute, HandBackWithin: 10 * time.Second,
		KillWithin: 2 * time.Second,
	}
}

// Validate demands positive times.
func (c *Config) Validate() error {
	var errs []error
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"start_within", c.StartWithin}, {"drain_within", c.DrainWithin},
		{"hand_back_within", c.HandBackWithin}, {"kill_within", c.KillWithin},
	} {
		if d.value <= 0 {
			errs = append(errs, fault.New(fault.Invalid, "%s: must be positive, is %s", d.key, d.value))
		}
	}
	return errors.Join(errs...)
}

// Service is one named part of a process.
type Service struct {
	Name string
	// Run works until c says Stopping, or ctx ends, and returns when nothing of it is left. It calls c.Ready once it
	// works. After Stopping it may finish what runs; after HandingBack it may not.
	Run func(ctx context.Context, c *Control) error
}

// Loop is a service that is ready at once and whose context ends when it is to stop.
func Loop(name string, run func(ctx context.Context) error) Service {
	return Service{Name: name, Run: func(ctx context.Context, c *Control) error {
		ctx, cancel := cancelWhen(ctx, c.Stopping())
		defer cancel()
		c.Ready()
		return run(ctx)
	}}
}

// cancelWhen gives a context that also ends when a channel closes. Its cancel leaves no goroutine.
func cancelWhen(ctx context.Context, closed <-chan struct{}) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel()
		<-ended
	}
}

// Resource is a service made of a start, after which it is ready, and a stop. The context of start ends when the group
// is to stop, that of stop when it is killed.
func Resource(name string, start, stop func(ctx context.Context) error) Service {
	return Service{Name: name, Run: func(ctx context.Context, c *Control) error {
		starting, cancel := cancelWhen(ctx, c.Stopping())
		err := start(starting)
		cancel()
		if err != nil {
			return err
		}
		c.Ready()
		<-c.Stopping()
		return stop(ctx)
	}}
}

// Group starts and stops services.
type Group struct {
	config  Config
	log     zerolog.Logger
	health  *Health
	control *Control
	exits   chan *running
	left    chan struct{} // closed when killed services are waited for no longer
	started []*running
}

// NewGroup makes a group. Health, which may be nil, is told that the process is not ready before all services are and
// while it stops.
func NewGroup(config Config, log zerolog.Logger, health *Health) *Group {
	g := &Group{config: config, log: log, health: health, control: NewControl(), left: make(chan struct{})}
	g.say(errors.New("starting"))
	return g
}

func (g *Group) say(err error) {
	if g.health != nil {
		g.health.Set("services", err)
	}
}

// Stop asks the group to end, as a signal does.
func (g *Group) Stop(level Level, reason string) { g.control.Stop(level, reason) }

// running is a service that was started.
type running struct {
	Service
	control *Control
	done    chan struct{}
	err     error
}

// Run starts the services in order, waits until something asks to end or one of them ends, and stops them in reverse.
// It returns nil after an orderly end that was asked for, else what went wrong. It is called once.
//
// The end of ctx is a HandBack, or a Kill where ctx carries a Control, which then is the way to ask for less.
func (g *Group) Run(ctx context.Context, services ...Service) error {
	parent := ControlOf(ctx)
	var watchers sync.WaitGroup
	ended := make(chan struct{})
	defer watchers.Wait()
	defer close(ended)
	watchers.Go(func() { g.obey(ctx, parent, ended) })
	watchers.Go(func() { g.escalate(ended) })
	inner, cancel := cancelWhen(context.WithoutCancel(ctx), g.control.killed())
	defer cancel()

	g.exits = make(chan *running, len(services))
	err := g.start(inner, services)
	if err == nil {
		if level, _ := g.control.Level(); level == 0 {
			g.say(nil)
			g.log.Info().Int("services", len(services)).Msg("all services are ready")
			if parent != nil {
				parent.Ready()
			}
		}
		err = g.wait()
	}
	if err != nil {
		g.log.Error().Err(err).Msg("service ended unasked, stopping")
		g.control.Stop(HandBack, err.Error())
	}
	level, reason := g.control.Level()
	g.say(fmt.Errorf("stopping (%s): %s", level, reason))
	return errors.Join(err, g.stop())
}

// obey passes on what the context and its Control ask.
func (g *Group) obey(ctx context.Context, parent *Control, ended <-chan struct{}) {
	atEnd := HandBack
	if parent != nil {
		atEnd = Kill
	} else {
		parent = NewControl() // nothing ever comes from it
	}
	for next := Drain; next <= Kill; next++ {
		select {
		case <-ended:
			return
		case <-ctx.Done():
			g.control.Stop(atEnd, context.Cause(ctx).Error())
			return
		case <-parent.levels[next-1]:
			_, reason := parent.Level()
			g.control.Stop(next, reason)
		}
	}
}

// escalate raises the level when the time of the present one is over.
func (g *Group) escalate(ended <-chan struct{}) {
	for _, step := range []struct {
		from   <-chan struct{}
		next   <-chan struct{}
		within time.Duration
		then   func()
	}{
		{g.control.Stopping(), g.control.HandingBack(), g.config.DrainWithin,
			func() { g.control.Stop(HandBack, "drain time is over") }},
		{g.control.HandingBack(), g.control.killed(), g.config.HandBackWithin,
			func() { g.control.Stop(Kill, "hand-back time is over") }},
		{g.control.killed(), nil, g.config.KillWithin, func() { close(g.left) }},
	} {
		select {
		case <-step.from:
		case <-ended:
			return
		}
		timer := time.NewTimer(step.within)
		select {
		case <-timer.C:
			step.then()
		case <-step.next:
		case <-ended:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// start starts one service after the other, each when the one before it is ready.
func (g *Group) start(ctx context.Context, services []Service) error {
	for _, s := range services {
		if level, _ := g.control.Level(); level != 0 {
			return nil
		}
		r := &running{Service: s, control: NewControl(), done: make(chan struct{})}
		g.started = append(g.started, r)
		begun := time.Now()
		go func() {
			defer close(r.done)
			r.err = s.Run(With(ctx, r.control), r.control)
			g.exits <- r
		}()
		timer := time.NewTimer(g.config.StartWithin)
		select {
		case <-r.control.ready:
			g.log.Info().Str("service", s.Name).Dur("ms", time.Since(begun)).Msg("service is ready")
		case ended := <-g.exits:
			timer.Stop()
			return unasked(ended)
		case <-g.control.Stopping():
		case <-timer.C:
			return fault.New(fault.Transient, "start service %s: not ready within %s", s.Name, g.config.StartWithin)
		}
		timer.Stop()
	}
	return nil
}

// wait waits for the first reason to end.
func (g *Group) wait() error {
	select {
	case <-g.control.Stopping():
		return nil
	case r := <-g.exits:
		if level, _ := g.control.Level(); level != 0 {
			return nil // stop reports its error
		}
		return unasked(r)
	}
}

func unasked(r *running) error {
	if r.err == nil {
		return fault.New(fault.Internal, "service %s ended by itself", r.Name)
	}
	return fmt.Errorf("service %s: %w", r.Name, r.err)
}

// stop asks the services to end, last started first, and waits for each. A service hears Drain and HandBack only when
// it is its turn, for it may be what the ones after it need to finish; Kill reaches all.
func (g *Group) stop() error {
	var watcher sync.WaitGroup
	all := make(chan struct{})
	watcher.Go(func() {
		select {
		case <-g.control.killed():
			_, reason := g.control.Level()
			for _, r := range g.started {
				r.control.Stop(Kill, reason)
			}
		case <-all:
		}
	})
	defer watcher.Wait()
	defer close(all)
	var errs []error
	for _, r := range slices.Backward(g.started) {
		alreadyEnded := r.hasEnded()
		if !g.stopOne(r) {
			errs = append(errs, fault.New(fault.Internal, "service %s did not stop in time and was left behind", r.Name))
			continue
		}
		g.log.Info().Str("service", r.Name).Msg("service stopped")
		if r.err != nil && !alreadyEnded && fault.KindOf(r.err) != fault.Cancelled {
			errs = append(errs, fmt.Errorf("stop service %s: %w", r.Name, r.err))
		}
	}
	return errors.Join(errs...)
}

// stopOne passes the group's level on to a service, as it rises, until the service has ended or is left behind.
func (g *Group) stopOne(r *running) (ended bool) {
	for {
		level, reason := g.control.Level()
		r.control.Stop(level, reason)
		var rises <-chan struct{}
		if level < Kill {
			rises = g.control.levels[level]
		}
		select {
		case <-r.done:
			return true
		case <-rises:
		case <-g.left:
			return r.hasEnded()
		}
	}
}

func (r *running) hasEnded() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
