package sim_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/ledger/memledger"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/wire"
)

// Bounds of a run, in virtual time.
const (
	faultsMin, faultsMax = time.Minute, 4 * time.Minute // or longer, until there were enough steps
	endWithin            = 20 * time.Minute             // every accepted job, after all is healed
	settleWithin         = 5 * time.Minute              // bytes and messages, after that
)

// undo ends a fault.
type undo struct {
	at time.Time
	do func()
}

// plan makes faults and ends them.
type plan struct {
	w         *world
	undos     []undo
	snapshots []memledger.Snapshot
}

// faults lists what may happen, with weights.
func (p *plan) faults() []struct {
	weight int
	do     func()
} {
	w := p.w
	if w.peace {
		return []struct {
			weight int
			do     func()
		}{{14, w.submit}}
	}
	return []struct {
		weight int
		do     func()
	}{
		{14, w.submit},
		{2, w.cancel},
		{3, p.killCoordinator},
		{2, p.cutCoordinator},
		{2, p.cutLedger},
		{1, p.cutServer},
		{4, p.crashWorker},
		{2, p.cutPower},
		{2, p.pauseHost},
		{2, p.pauseCoordinator},
		{2, p.stopWorker},
		{2, p.turnClock},
		{2, p.cutHost},
		{3, p.harmLedger},
		{4, p.harmHost},
	}
}

// until makes faults until their time is over, and has all of them end then.
func (p *plan) until(end time.Time) {
	all := p.faults()
	total := 0
	for _, f := range all {
		total += f.weight
	}
	for (time.Now().Before(end) || p.w.expected() < p.w.stepsMin) && !p.w.failed() {
		time.Sleep(p.w.dice.between(200*time.Millisecond, 8*time.Second))
		p.expire(time.Now())
		at := p.w.dice.pick(total)
		for _, f := range all {
			if at -= f.weight; at < 0 {
				f.do()
				break
			}
		}
	}
	p.expire(time.Now().Add(time.Hour))
}

// partitionSteps is about how many steps it takes to end a partition that waits.
const partitionSteps = 150

// expected is about how many steps there will have been when all accepted jobs have ended.
func (w *world) expected() int {
	steps := w.counts.steps()
	for _, r := range w.open() {
		steps += partitionSteps * (len(r.Partitions) - r.VerifiedCount())
	}
	return steps
}

func (p *plan) expire(now time.Time) {
	slices.SortStableFunc(p.undos, func(a, b undo) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	for len(p.undos) > 0 && !p.undos[0].at.After(now) {
		next := p.undos[0]
		p.undos = p.undos[1:]
		next.do()
	}
}

// later ends a fault after a time between low and high.
func (p *plan) later(low, high time.Duration, do func()) {
	p.undos = append(p.undos, undo{time.Now().Add(p.w.dice.between(low, high)), do})
}

// note counts a fault of a kind, and says what it hits.
func (p *plan) note(kind, who string) {
	p.w.counts.fault(kind)
	p.w.log.Info().Msgf("FAULT %s: %s", kind, who)
}

func (p *plan) host() *host { return p.w.hosts[p.w.dice.pick(len(p.w.hosts))] }

func (p *plan) killCoordinator() {
	seat := p.w.dice.pick(len(p.w.seats))
	p.note("coordinator killed", fmt.Sprint(seat))
	p.w.killCoordinator(seat)
	p.later(time.Second, 30*time.Second, func() { p.w.startCoordinator(seat) })
}

func (p *plan) cutCoordinator() {
	if c := p.w.seats[p.w.dice.pick(len(p.w.seats))]; c != nil {
		p.note("coordinator cut off", c.name)
		c.link.cut()
		p.later(time.Second, 40*time.Second, c.link.heal)
	}
}

func (p *plan) cutLedger() {
	if c := p.w.seats[p.w.dice.pick(len(p.w.seats))]; c != nil {
		p.note("coordinator cut off from the ledger", c.name)
		c.ledger.cut()
		p.later(time.Second, 40*time.Second, c.ledger.heal)
	}
}

func (p *plan) cutServer() {
	p.note("bus away", "all")
	p.w.server.Cut()
	p.later(time.Second, 30*time.Second, p.w.server.Heal)
}

func (p *plan) crashWorker() {
	h, role := p.host(), wire.RoleSynth
	if p.w.dice.chance(0.5) {
		role = wire.RoleGPU
	}
	p.note("worker crashed", role+" of "+string(h.name))
	h.crash(role)
	p.later(time.Second, 40*time.Second, h.start)
}

func (p *plan) cutPower() {
	h := p.host()
	p.note("power cut", string(h.name))
	h.cutPower()
	p.later(time.Second, 60*time.Second, h.start)
}

func (p *plan) pauseHost() {
	h := p.host()
	p.note("host paused", string(h.name))
	h.pause()
	p.later(5*time.Second, 70*time.Second, h.resume)
}

// pauseCoordinator stops one for less than its lead lasts, or for longer.
func (p *plan) pauseCoordinator() {
	if c := p.w.seats[p.w.dice.pick(len(p.w.seats))]; c != nil {
		p.note("coordinator paused", c.name)
		c.pause()
		p.later(time.Second, 40*time.Second, c.resume)
	}
}

// stopWorker asks a worker to leave, and kills it if it takes too long.
func (p *plan) stopWorker() {
	h, role, level := p.host(), wire.RoleSynth, service.Drain
	if p.w.dice.chance(0.5) {
		role = wire.RoleGPU
	}
	if p.w.dice.chance(0.5) {
		level = service.HandBack
	}
	p.note("worker stopped", role+" of "+string(h.name)+": "+level.String())
	h.leave(role, level)
	p.later(time.Second, 40*time.Second, func() { h.crash(role); h.start() })
}

// turnClock sets a machine's clock.
func (p *plan) turnClock() {
	all := append(slices.Clone(p.w.clocks), p.w.redis)
	for _, h := range p.w.hosts {
		all = append(all, h.clock)
	}
	c := all[p.w.dice.pick(len(all))]
	p.note("clock set", c.who)
	c.jump(p.w.dice)
}

func (p *plan) cutHost() {
	h := p.host()
	p.note("host cut off", string(h.name))
	for _, l := range h.links() {
		l.cut()
		p.later(5*time.Second, 60*time.Second, l.heal)
	}
}

// harmLedger wipes the ledger, takes it away, or brings an older state of it.
func (p *plan) harmLedger() {
	l := p.w.ledger
	what := p.w.dice.pick(5)
	p.snapshots = append(p.snapshots, l.Snapshot())
	old := p.snapshots[p.w.dice.pick(len(p.snapshots))]
	if what == 4 {
		return
	}
	p.note("ledger "+[]string{"wiped", "restarted with older state", "rolled back", "away"}[what], "all")
	switch what {
	case 0:
		p.w.harmed(l.Wipe)
	case 1:
		p.w.harmed(func() { l.Restart(old) })
	case 2:
		p.w.harmed(func() { l.RollBack(old) })
	case 3:
		l.SetAway(errors.New("loading"))
		p.later(time.Second, 30*time.Second, func() { l.SetAway(nil) })
	}
}

// harmHost spoils a host for a while.
func (p *plan) harmHost() {
	h := p.host()
	flag := []*bool{&h.full, &h.lies, &h.slow, &h.lost}
	names := []string{"shm full", "device lies", "host slow", "device lost"}
	i := p.w.dice.pick(len(flag))
	p.note(names[i], string(h.name))
	h.change(func() { *flag[i] = true })
	p.later(5*time.Second, 60*time.Second, func() { h.change(func() { *flag[i] = false }) })
}

// heal ends all trouble.
func (w *world) heal() {
	w.mu.Lock()
	w.calm = true
	w.mu.Unlock()
	w.books.Lock()
	w.healedAt = time.Now()
	w.books.Unlock()
	for seat := range w.seats {
		w.startCoordinator(seat)
	}
	for _, h := range w.hosts {
		h.start()
		for _, l := range h.links() {
			l.spoil(trouble{})
		}
	}
	for _, c := range w.seats {
		c.link.spoil(trouble{})
		c.ledger.spoil(trouble{})
	}
}

// run is one simulation.
func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	for seat := range w.seats {
		w.startCoordinator(seat)
	}
	for _, h := range w.hosts {
		h.start()
	}
	p := &plan{w: w}
	p.until(time.Now().Add(w.dice.between(faultsMin, faultsMax)))
	w.log.Info().Msg("HEAL")
	w.heal()
	w.recover(ctx)
	for w.counts.steps() < w.stepsMin && !w.failed() { // it works as if nothing had been
		for w.expected() < w.stepsMin && !w.failed() {
			w.submit()
			time.Sleep(w.dice.between(time.Second, 4*time.Second))
		}
		w.recover(ctx)
	}
	cancel()
	w.stop()
	w.clients.Wait()
	time.Sleep(2 * ackWait) // late calls arrive, the server's waits end
}

// recover waits until all jobs have ended and nothing is left of them.
func (w *world) recover(ctx context.Context) {
	w.within(time.Minute, func() string {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if err := w.readmit(ctx); err != nil {
			return fmt.Sprintf("no leader a minute after all was healed: %v", err)
		}
		return ""
	})
	deadline := time.Now().Add(endWithin)
	w.within(endWithin, func() string {
		if time.Now().Before(deadline) {
			return w.unended()
		}
		text := ""
		for _, r := range w.open() {
			text += fmt.Sprintf("invariant 3: job %s has not ended %s after all was healed: %s\n%s", r.ID, endWithin,
				inWords(r), w.why(ctx, r.ID))
		}
		return text
	})
	w.within(settleWithin, func() string {
		if text := w.left(ctx); text != "" {
			return "invariants 2 and 9: left when all jobs have ended:\n" + text
		}
		return ""
	})
}

// within fails unless there is nothing to say in time.
func (w *world) within(limit time.Duration, look func() string) {
	deadline := time.Now().Add(limit)
	for !w.failed() {
		text := look()
		if text == "" {
			return
		}
		if time.Now().After(deadline) {
			w.fail("%s", text)
			return
		}
		time.Sleep(time.Second)
	}
}

func (w *world) stop() {
	for seat := range w.seats {
		w.killCoordinator(seat)
	}
	for _, h := range w.hosts {
		h.resume()
		h.crash(wire.RoleSynth)
		h.crash(wire.RoleGPU)
	}
	w.bus.Close()
}
