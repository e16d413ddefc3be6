package sim_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/proof/toy"
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
	w    *world
	name job.Node
	room int // attempts that fit
	dice *dice

	mu      sync.Mutex
	boot    string
	book    map[job.Attempt]*booking
	workers map[string]*worker // by role; a missing one is down
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
	sealed  bool
	deadAt  time.Time
}

// worker is one process.
type worker struct {
	h        *host
	role     string
	instance string
	link     *link
	ctx      context.Context
	kill     context.CancelFunc
	wg       sync.WaitGroup
	poke     chan struct{}

	// guarded by the host
	seq     uint64
	fences  *attempt.Fences
	running map[job.Attempt]*work
}

type work struct {
	stage    job.Stage
	progress uint64
	stop     context.CancelFunc
}

func (w *world) newHost(name job.Node, room int) *host {
	return &host{
		w: w, name: name, room: room, dice: newDice(w.seed, "host "+string(name)), boot: string(name) + "-boot-0",
		book: map[job.Attempt]*booking{}, workers: map[string]*worker{}, made: map[report]time.Time{},
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
		name := fmt.Sprintf("%s-%s-%d", h.name, role, h.starts)
		ctx, kill := context.WithCancel(context.Background())
		p := &worker{
			h: h, role: role, instance: name, link: h.w.link(name), ctx: ctx, kill: kill, poke: make(chan struct{}, 1),
			running: map[job.Attempt]*work{},
		}
		h.workers[role] = p
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

// cutPower kills all; nothing survives but the name.
func (h *host) cutPower() {
	h.crash(wire.RoleSynth)
	h.crash(wire.RoleGPU)
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.book)
	h.boot = fmt.Sprintf("%s-boot-%d", h.name, h.starts)
}

func (h *host) pause() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.paused == nil {
		h.paused = make(chan struct{})
	}
}

func (h *host) resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.paused != nil {
		close(h.paused)
		h.paused = nil
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
	for _, p := range h.workers {
		out = append(out, p.link)
	}
	return out
}

// admit books an attempt if it fits: the node's veto.
func (h *host) admit(p *worker, a job.Attempt, need ledger.Amounts) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.full {
		return false
	}
	used := ledger.Amounts{}
	for _, b := range h.book {
		for pool, n := range b.amounts {
			used[pool] += n
		}
	}
	capacity := h.capacity()
	for pool, n := range need {
		if used[pool]+n > capacity[pool] {
			return false
		}
	}
	h.book[a] = &booking{amounts: need.Clone(), stage: job.Synthesizing, owner: p}
	h.w.seeHeld(h)
	h.w.log.Debug().Stringer("attempt", a).Str("worker", p.instance).Msg("host books")
	return true
}

// gate holds a worker while its host is paused.
func (p *worker) gate() error {
	for {
		p.h.mu.Lock()
		paused := p.h.paused
		p.h.mu.Unlock()
		if p.ctx.Err() != nil || paused == nil {
			return p.ctx.Err()
		}
		select {
		case <-paused:
		case <-p.ctx.Done():
		}
	}
}

func (p *worker) run() {
	stop, err := p.link.Subscribe(wire.ControlSubject(p.h.name), p.control)
	if err != nil {
		return // killed already
	}
	defer stop()
	consumer := bus.Consumer{
		Stream: wire.StreamSynth, Name: "synth-" + string(p.h.name), Subject: wire.SynthSubject(p.h.name),
		AckWait: ackWait,
	}
	slots, serve := 2, p.synthesize
	if p.role == wire.RoleGPU {
		consumer.Stream, consumer.Name = wire.StreamProve, "prove-"+string(p.h.name)
		consumer.Subject = wire.ProveSubject(p.h.name, device)
		slots, serve = 3, p.prove
	}
	p.wg.Go(p.beats)
	var queue bus.Queue
	for {
		if queue, err = p.link.Queue(p.ctx, consumer); err == nil {
			break
		}
		if sleep(p.ctx, time.Second) != nil {
			return
		}
	}
	turn := make(chan struct{}, 1)
	for range slots {
		p.wg.Go(func() {
			for p.gate() == nil {
				d, err := queue.Fetch(p.ctx)
				if err != nil || p.gate() != nil {
					return
				}
				serve(d, turn)
			}
		})
	}
	<-p.ctx.Done()
}

func (p *worker) beats() {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		if p.gate() != nil {
			return
		}
		p.send(wire.BeatSubject(p.h.name), p.beat())
		select {
		case <-p.ctx.Done():
			return
		case <-ticker.C:
		case <-p.poke:
		}
	}
}

func (p *worker) changed() {
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

func (p *worker) beat() *wire.Beat {
	h := p.h
	h.mu.Lock()
	defer h.mu.Unlock()
	p.seq++
	b := &wire.Beat{
		Node: h.name, Boot: h.boot, Instance: p.instance, Role: p.role, Seq: p.seq, Build: "sim", WireMin: 1,
		WireMax: wire.Version, State: wire.StateReady, Slots: 2,
	}
	if p.role == wire.RoleSynth {
		b.Synth = []wire.SynthCircuit{{
			Circuit: toy.Circuit().ID(), SegmentBytes: segmentBytes, ScratchBytes: scratchBytes,
		}}
	} else {
		b.Slots = 1
		b.Devices = []wire.DeviceState{{
			Device: device, UUID: "CPU-" + string(h.name), Healthy: true,
			Circuits: []wire.DeviceCircuit{{Circuit: toy.Circuit().ID(), Ready: true, SRSBytes: bytesize.MiB / 2}},
		}}
	}
	for _, a := range slices.SortedFunc(maps.Keys(p.running), byAttempt) {
		r := p.running[a]
		b.Running = append(b.Running, wire.Running{
			Attempt: a, Stage: r.stage, Progress: r.progress, Handoff: wire.HandoffSHM,
		})
	}
	// The worker that started first has the host's lock.
	for _, other := range h.workers {
		if other != p && other.instance < p.instance {
			return b
		}
	}
	b.Host = h.report()
	h.made[report{p.instance, p.seq}] = time.Now()
	return b
}

// report is the host's book, after a look at what is dead in it. The host's lock is held.
func (h *host) report() *wire.HostReport {
	report := &wire.HostReport{Capacity: h.capacity(), BookComplete: true, At: time.Now()}
	for _, a := range slices.SortedFunc(maps.Keys(h.book), byAttempt) {
		b := h.book[a]
		alive := h.workers[b.owner.role] == b.owner
		if !alive && (!b.sealed || b.stage != job.Sealed) {
			if b.deadAt.IsZero() {
				b.deadAt = time.Now()
			} else if time.Since(b.deadAt) > heartbeat {
				delete(h.book, a)
				h.w.log.Debug().Stringer("attempt", a).Str("host", string(h.name)).Msg("host sweeps what is dead")
				continue
			}
		}
		report.Book = append(report.Book, wire.Booking{Attempt: a, Amounts: b.amounts.Clone(), Stage: b.stage,
			Alive: alive})
	}
	return report
}

func byAttempt(a, b job.Attempt) int {
	x, y := a.String(), b.String()
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func (p *worker) send(subject string, body wire.Body) {
	data, err := wire.Encode(body)
	if err != nil {
		p.h.w.fail("encode %T: %v", body, err)
		return
	}
	_ = p.link.Send(p.ctx, bus.Message{Subject: subject, Data: data})
}

func (p *worker) control(m bus.Message) {
	var c wire.Control
	if p.gate() != nil || wire.Decode(m.Data, &c) != nil || c.Kind != wire.ControlCancel {
		return
	}
	a, idle := *c.Attempt, true
	p.h.mu.Lock()
	for _, other := range p.h.workers {
		idle = idle && other.running[a] == nil
	}
	if r := p.running[a]; r != nil {
		r.stop()
	}
	b := p.h.book[a]
	p.h.mu.Unlock()
	if idle && b != nil && b.sealed {
		p.free(a) // a sealed segment that nobody works on
	}
}
