package sim_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/dispatch"
	"github.com/proofrack/proofrack/coordinator/internal/lead"
	"github.com/proofrack/proofrack/coordinator/internal/rack"
	jobs "github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// instance is one start of a coordinator, put together as the program does it, without its doors.
type instance struct {
	w      *world
	name   string
	link   *link
	ledger *store
	kill   context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	store  *jobs.Store
	nodes  *rack.Registry
	leader *dispatch.Leader
	wokeAt time.Time // when it last went on after it was stopped
}

// startCoordinator starts one in a seat.
func (w *world) startCoordinator(seat int) {
	if w.seats[seat] != nil {
		return
	}
	w.starts++
	name := fmt.Sprintf("coordinator-%d-%d", seat, w.starts)
	ctx, kill := context.WithCancel(context.Background())
	line := w.line("ledger " + name)
	line.spoil(w.ledgerBadness())
	c := &instance{w: w, name: name, link: w.link(name), ledger: &store{line, w.ledger.Open(), w}, kill: kill}
	w.seats[seat], w.clocks[seat].line = c, c.link.line
	c.wg.Go(func() {
		w.clocks[seat].use()
		for ctx.Err() == nil {
			if err := c.run(ctx); err != nil && ctx.Err() == nil {
				w.log.Warn().Err(err).Str("instance", name).Msg("coordinator ended")
			}
			_ = sleep(ctx, time.Second)
		}
	})
}

// killCoordinator ends one as a crash does.
func (w *world) killCoordinator(seat int) {
	c := w.seats[seat]
	if c == nil {
		return
	}
	w.seats[seat] = nil
	c.link.kill()
	c.ledger.kill()
	c.kill()
	c.wg.Wait()
	c.link.end()
}

// pause stops a coordinator as SIGSTOP does. What its timers call waits until it goes on. Who waits for a timer is
// woken, and stops at the first call: as if it went on first.
func (c *instance) pause()  { c.link.pause(); c.ledger.pause() }
func (c *instance) resume() { c.wokeAt = time.Now(); c.link.resume(); c.ledger.resume() }

func (c *instance) run(ctx context.Context) error {
	store, err := jobs.Open(ctx, c.link, jobs.DefaultConfig(), c.w.log)
	if err != nil {
		return err
	}
	defer store.Close()
	nodes, err := rack.New(rack.DefaultConfig())
	if err != nil {
		return err
	}
	real, err := c.w.made.newVerifier(store)
	if err != nil {
		return err
	}
	kv, err := c.link.KV(ctx, wire.BucketLead)
	if err != nil {
		return err
	}
	elector, err := lead.New(kv, lead.Config{Instance: c.name, Lease: lead.LeaseDefault}, c.w.log)
	if err != nil {
		return err
	}
	stop, err := c.link.hear(wire.AllBeats, func(m bus.Message) {
		b := c.w.readBeat(m.Data)
		if len(b.Running) > 0 || b.Host != nil && len(b.Host.Book) > 0 {
			c.w.counts.step(stepMessage)
		}
		nodes.Beat(b, time.Now())
	})
	if err != nil {
		return err
	}
	defer stop()
	c.set(store, nodes, nil)
	defer c.set(nil, nil, nil)
	return elector.Run(ctx, func(ctx context.Context, reign lead.Reign) error {
		ctx, over := context.WithCancel(ctx)
		defer over()
		c.w.leads(c, ctx)
		config := dispatch.DefaultConfig()
		config.Scheduler.GuessDefault = 10 * time.Second
		leader, err := dispatch.New(config, dispatch.Parts{
			Bus: c.link, Store: store, Nodes: nodes, Ledger: c.ledger, Verifier: &verifier{real, &c.w.made.verdicts},
			Log: c.w.log.With().
				Str("instance", c.name).Logger(), Tenants: []job.Tenant{job.MainTenant},
		}, reign)
		if err != nil {
			return err
		}
		c.set(store, nodes, leader)
		defer c.set(store, nodes, nil)
		return leader.Run(ctx)
	})
}

// readBeat decodes a beat, once for all coordinators.
func (w *world) readBeat(data []byte) *wire.Beat {
	w.mu.Lock()
	b := w.beats[string(data)]
	w.mu.Unlock()
	if b != nil {
		return b
	}
	b = &wire.Beat{}
	if err := wire.Decode(data, b); err != nil {
		w.fail("beat: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.beats) >= beatsKept {
		clear(w.beats)
	}
	w.beats[string(data)] = b
	return b
}

// beatsKept bounds the beats that are kept decoded.
const beatsKept = 64

func (c *instance) set(s *jobs.Store, n *rack.Registry, l *dispatch.Leader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store, c.nodes, c.leader = s, n, l
}

// parts are the store of an instance that works, and its leader if it leads.
func (c *instance) parts() (*jobs.Store, *dispatch.Leader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store, c.leader
}

// errNobody means that no coordinator works, or leads, right now.
var errNobody = errors.New("no coordinator")

// leading is the leader, as far as the instances know.
func (w *world) leading() (*dispatch.Leader, *jobs.Store, error) {
	for _, c := range w.seats {
		if c == nil {
			continue
		}
		if s, l := c.parts(); l != nil && c.link.isUp() {
			return l, s, nil
		}
	}
	return nil, nil, errNobody
}

// readmit is what an operator does when the devices have been put right.
func (w *world) readmit(ctx context.Context) error {
	l, s, err := w.leading()
	if err != nil {
		return err
	}
	for name, mark := range s.Marks() {
		for d := range mark.Quarantined {
			if err := l.Readmit(ctx, name, d); err != nil {
				return err
			}
		}
	}
	return l.Readmit(ctx, "", "")
}
