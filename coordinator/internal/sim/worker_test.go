package sim_test

import (
	"context"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/wire"
)

// worker is one process: the real loop of package attempt, with modelled work.
type worker struct {
	attempt.Worker

	h        *host
	role     string
	instance string
	number   int // of its start
	link     *link
	ctx      context.Context //nolint:containedctx // its life
	kill     context.CancelFunc
	wg       sync.WaitGroup
	poke     chan struct{}
	orders   *service.Control
	turn     chan struct{} // of the device
	seq      uint64        // guarded by the host
}

// newWorker makes one that is to be run. The host's lock is held.
func (h *host) newWorker(role, name string) *worker {
	ctx, kill := context.WithCancel(context.Background())
	p := &worker{
		h: h, role: role, instance: name, number: h.starts, link: h.w.link(name), ctx: ctx, kill: kill,
		poke: make(chan struct{}, 1), turn: make(chan struct{}, 1), orders: service.NewControl(),
	}
	config := attempt.DefaultConfig()
	config.Heartbeat, config.AckWait = heartbeat, ackWait
	p.Worker = attempt.Worker{
		Config: config, Bus: p.link, Board: attempt.NewBoard(p.changed), Gate: attempt.NewGate(p.changed),
		Notes: attempt.NewGate(p.changed), Node: h.name, Build: "sim", Log: h.w.log, Finishes: role == wire.RoleGPU,
		Outbox: attempt.NewOutbox(ctx, p.link, config, "", -1, h.w.log),
	}
	return p
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

// run is the process's life, which its last act ends when it was asked to leave.
func (p *worker) run() {
	p.h.clock.use()
	records, err := p.records()
	if err != nil {
		return
	}
	p.Fences = attempt.NewFences(records, p.link.Connected, p.Config.FenceMax)
	stop, err := p.Obey(func(*wire.Control) { p.changed() })
	if err != nil {
		return // killed already
	}
	defer stop()
	p.wg.Go(p.beats)
	source := attempt.Source{
		Consumer: bus.Consumer{
			Stream: wire.StreamSynth, Name: "synth-" + string(p.h.name), Subject: wire.SynthSubject(p.h.name),
			AckWait: ackWait,
		}, Slots: synthSlots, Decode: p.decodeSynth,
	}
	if p.role == wire.RoleGPU {
		source.Consumer.Stream, source.Consumer.Name = wire.StreamProve, "prove-"+string(p.h.name)
		source.Consumer.Subject = wire.ProveSubject(p.h.name, device)
		source.Slots, source.Decode, source.Left = proveSlots, p.decodeProve, p.left
	}
	if err := p.Serve(p.ctx, p.orders, source); err != nil {
		p.h.w.fail("worker %s ended: %v", p.instance, err)
	}
	p.Outbox.Wait()
	p.h.mu.Lock()
	if p.h.lives(p) {
		delete(p.h.workers, p.role)
	}
	p.h.mu.Unlock()
	p.link.end()
	p.kill()
}

// Slots of the loops.
const synthSlots, proveSlots = 2, 3

func (p *worker) records() (bus.KV, error) {
	for {
		kv, err := p.link.KV(p.ctx, wire.BucketJobs)
		if err == nil {
			return kv, nil
		}
		if err := sleep(p.ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

// beats sends beats, and mends the host's book if this process speaks for it.
func (p *worker) beats() {
	ticker, sweeps := time.NewTicker(heartbeat), time.NewTicker(sweepEvery)
	defer ticker.Stop()
	defer sweeps.Stop()
	for {
		if p.gate() != nil {
			return
		}
		p.send(wire.BeatSubject(p.h.name), p.beat())
		select {
		case <-p.ctx.Done():
			return
		case <-sweeps.C:
			p.mend(true)
		case <-ticker.C:
			p.mend(false)
		case <-p.poke:
		}
	}
}

// sweepEvery is how often the records are asked about what nobody holds.
const sweepEvery = 30 * time.Second

func (p *worker) mend(ask bool) {
	p.h.mu.Lock()
	speaks := p.h.speaks(p)
	p.h.mu.Unlock()
	if !speaks || p.gate() != nil {
		return
	}
	over := map[job.Attempt]bool{}
	if ask {
		for _, a := range p.h.unheld() {
			over[a] = fault.KindOf(p.Fences.Check(p.ctx, a)) == fault.Lost
		}
		if p.gate() != nil {
			return
		}
	}
	p.h.mend(over)
}

func (p *worker) changed() {
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

func (p *worker) beat() *wire.Beat {
	b := &wire.Beat{
		Node: p.h.name, Instance: p.instance, Role: p.role, Build: "sim", WireMin: 1, WireMax: wire.Version,
		AckWaitMS: ackWait.Milliseconds(), HeartbeatMS: heartbeat.Milliseconds(), Slots: synthSlots,
		Running: p.Board.Running(),
	}
	b.State, b.Reason = p.State()
	if level, why := p.orders.Level(); level > 0 {
		b.State, b.Reason = wire.StateDraining, wire.ReasonStopping+why
	}
	if p.role == wire.RoleSynth {
		b.Synth = []wire.SynthCircuit{{
			Circuit: toy.Circuit().ID(), SegmentBytes: segmentBytes, ScratchBytes: scratchBytes,
		}}
	} else {
		b.Slots = 1
		b.Devices = []wire.DeviceState{{
			Device: device, UUID: p.uuid(), Healthy: true,
			Circuits: []wire.DeviceCircuit{{Circuit: toy.Circuit().ID(), Ready: true, SRSBytes: bytesize.MiB / 2}},
		}}
	}
	h := p.h
	h.mu.Lock()
	defer h.mu.Unlock()
	p.seq++
	b.Boot, b.Seq = h.boot, p.seq
	if h.speaks(p) {
		b.Host = h.report()
		h.made[report{p.instance, p.seq}] = time.Now()
	}
	return b
}

func (p *worker) uuid() string { return "CPU-" + string(p.h.name) }

func (p *worker) send(subject string, body wire.Body) {
	data, err := wire.Encode(body)
	if err != nil {
		p.h.w.fail("encode %T: %v", body, err)
		return
	}
	_ = p.link.Send(p.ctx, bus.Message{Subject: subject, Data: data})
}
