package sim_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/wire"
)

// What one attempt takes in shm, and in ram beside its scratch; the beats say so.
const (
	segmentBytes = 64 * bytesize.MiB
	scratchBytes = 16 * bytesize.MiB
	heartbeat    = 5 * time.Second
	ackWait      = 30 * time.Second
	device       = job.Device("cpu")
)

// host is a modelled node: what it holds (files, which outlive processes) and its two workers.
type host struct {
	w     *world
	name  job.Node
	room  int // attempts that fit
	dice  *dice
	clock *clock

	mu      sync.Mutex
	boot    string
	book    map[job.Attempt]*booking
	freed   map[job.Attempt]bool // ended here; marks, as the real book keeps them
	ended   map[job.Attempt]bool // the same, for the watchers: no power cut takes these
	workers map[string]*worker   // by role; a missing one is down
	starts  int
	made    map[report]time.Time
	paused  chan struct{} // closed when it goes on; nil while it runs
	full    bool          // shm has no room beside what is booked
	lies    bool          // its device makes wrong proofs
	slow    bool
	lost    bool // its device fails
}

// report names one report of the host.
type report struct {
	instance string
	seq      uint64
}

// booking is what an attempt holds on the host.
type booking struct {
	amounts ledger.Amounts
	stage   job.Stage
	owner   *worker
	sealed  bool   // its segment can be proved
	handed  bool   // its owner passed it on: the segment holds it
	shrunk  bool   // some of its bytes are granted to others by now
	trace   string // of its task
}

func (w *world) newHost(name job.Node, room int) *host {
	return &host{
		w: w, name: name, room: room, dice: newDice(w.seed, "host "+string(name)), boot: string(name) + "-boot-0",
		clock: w.newClock("host " + string(name)), book: map[job.Attempt]*booking{}, freed: map[job.Attempt]bool{},
		ended:   map[job.Attempt]bool{},
		workers: map[string]*worker{}, made: map[report]time.Time{},
	}
}

func (h *host) capacity() ledger.Amounts {
	n := bytesize.Bytes(h.room)
	return ledger.Amounts{
		ledger.PoolRAM: n*(segmentBytes+scratchBytes) + bytesize.MiB, ledger.PoolSHM: n * segmentBytes,
	}
}

// start starts the workers that are down.
func (h *host) start() {
	for _, role := range []string{wire.RoleSynth, wire.RoleGPU} {
		h.mu.Lock()
		if h.workers[role] != nil {
			h.mu.Unlock()
			continue
		}
		h.starts++
		p := h.newWorker(role, fmt.Sprintf("%s-%s-%d", h.name, role, h.starts))
		h.workers[role] = p
		if h.paused != nil {
			p.link.pause()
		}
		h.mu.Unlock()
		p.wg.Go(p.run)
	}
}

// crash kills a worker. What it held stays booked until the host's other worker, or the next one, finds it dead.
func (h *host) crash(role string) {
	h.mu.Lock()
	p := h.workers[role]
	delete(h.workers, role)
	h.mu.Unlock()
	if p == nil {
		return
	}
	p.link.kill()
	p.kill()
	p.wg.Wait()
	p.link.end()
}

// leave asks a worker to end: at once, or when what it works on is done.
func (h *host) leave(role string, level service.Level) {
	h.mu.Lock()
	p := h.workers[role]
	h.mu.Unlock()
	if p != nil {
		p.orders.Stop(level, "the simulation")
		p.changed()
	}
}

// cutPower kills all; nothing survives but the name.
func (h *host) cutPower() {
	h.crash(wire.RoleSynth)
	h.crash(wire.RoleGPU)
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.book)
	clear(h.freed)
	h.boot = fmt.Sprintf("%s-boot-%d", h.name, h.starts)
}

// pause stops all processes of the host, as SIGSTOP does.
func (h *host) pause() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.paused != nil {
		return
	}
	h.paused = make(chan struct{})
	for _, p := range h.workers {
		p.link.pause()
	}
}

func (h *host) resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.paused == nil {
		return
	}
	close(h.paused)
	h.paused = nil
	for _, p := range h.workers {
		p.link.resume()
	}
}

func (h *host) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// links are the lines of its workers.
func (h *host) links() []*link {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*link
	for _, role := range []string{wire.RoleSynth, wire.RoleGPU} {
		if p := h.workers[role]; p != nil {
			out = append(out, p.link)
		}
	}
	return out
}

// What the host's book answers, as package agent does.
var (
	errBooked     = fault.New(fault.Conflict, "a live worker holds it")
	errHandedOver = fault.New(fault.Conflict, "it was handed over")
	errFreed      = fault.New(fault.Lost, "it ended on this host")
	errNotBooked  = fault.New(fault.NotFound, "it is not booked")
	errVeto       = fault.New(fault.Exhausted, "no room on the host")
)

// lives tells whether a worker is there. The host's lock is held.
func (h *host) lives(p *worker) bool { return h.workers[p.role] == p }

// admit books an attempt if it fits: the node's veto.
func (h *host) admit(p *worker, t *wire.SynthTask) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := t.Attempt
	old := h.book[a]
	switch {
	case !h.lives(p):
		return errKilled
	case old != nil && old.handed && old.sealed:
		return errHandedOver
	case old != nil && !old.handed && h.lives(old.owner):
		return errBooked
	case old == nil && h.freed[a]:
		return errFreed
	case h.full:
		return errVeto
	}
	used, capacity := ledger.Amounts{}, h.capacity()
	for other, b := range h.book {
		if other == a {
			continue
		}
		for pool, n := range b.amounts {
			used[pool] += n
		}
	}
	for pool, n := range t.Amounts {
		if used[pool]+n > capacity[pool] {
			return errVeto
		}
	}
	h.book[a] = &booking{amounts: t.Amounts.Clone(), stage: job.Reserved, owner: p, trace: t.Slice.SHA256}
	h.w.seeHeld(h)
	h.w.log.Debug().Stringer("attempt", a).Str("worker", p.instance).Msg("host books")
	return nil
}

// take makes a worker the owner of what was handed over, or whose worker died.
func (h *host) take(p *worker, a job.Attempt) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.book[a]
	switch {
	case !h.lives(p):
		return errKilled
	case b == nil:
		return errNotBooked
	case !b.handed && h.lives(b.owner):
		return errBooked
	}
	b.owner, b.handed = p, false
	return nil
}

// change changes what a live worker has booked; false: it is somebody else's.
func (p *worker) change(a job.Attempt, f func(*booking)) bool {
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	b := p.h.book[a]
	if b == nil || b.owner != p || b.handed || !p.h.lives(p) {
		return false
	}
	f(b)
	return true
}

// orphans are sealed segments whose worker is dead.
func (h *host) orphans() (all []*wire.ProveTask) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a, b := range h.book {
		if b.sealed && !h.lives(b.owner) {
			all = append(all, proveTask(h, a, b.amounts, b.trace))
		}
	}
	slices.SortFunc(all, func(x, y *wire.ProveTask) int { return byAttempt(x.Attempt, y.Attempt) })
	return all
}

// unheld lists what no live worker holds, and what has ended here.
func (h *host) unheld() (all []job.Attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a, b := range h.book {
		if b.handed || !h.lives(b.owner) {
			all = append(all, a)
		}
	}
	for a := range h.freed {
		all = append(all, a)
	}
	slices.SortFunc(all, byAttempt)
	return all
}

// mend takes out of the book what is dead, and what is over.
func (h *host) mend(over map[job.Attempt]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a := range h.freed {
		if over[a] {
			delete(h.freed, a)
		}
	}
	for a, b := range h.book {
		switch {
		case !b.handed && h.lives(b.owner):
		case !over[a] && b.sealed:
			b.stage, b.handed = job.Sealed, true
		default:
			delete(h.book, a)
			if b.shrunk && !over[a] {
				h.freed[a], h.ended[a] = true, true
			}
			h.w.log.Debug().Stringer("attempt", a).Str("host", string(h.name)).Msg("host sweeps what is dead")
		}
	}
}

// speaks tells whether a worker speaks for the host: the one that has been there longest does. The host's lock is held.
func (h *host) speaks(p *worker) bool {
	for _, other := range h.workers {
		if other.number < p.number {
			return false
		}
	}
	return h.lives(p)
}

// report is the host's book. The host's lock is held.
func (h *host) report() *wire.HostReport {
	report := &wire.HostReport{Capacity: h.capacity(), BookComplete: true, At: time.Now()}
	for _, a := range slices.SortedFunc(maps.Keys(h.book), byAttempt) {
		b := h.book[a]
		report.Book = append(report.Book, wire.Booking{
			Attempt: a, Amounts: b.amounts.Clone(), Stage: b.stage, Alive: b.handed && b.sealed || h.lives(b.owner),
		})
	}
	report.Freed = slices.SortedFunc(maps.Keys(h.freed), byAttempt)
	return report
}

func byAttempt(a, b job.Attempt) int { return strings.Compare(a.String(), b.String()) }
