package coordinator_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

// segmentBytes is what one attempt of the scripted nodes takes in shm, and in ram beside its scratch.
const (
	segmentBytes = 64 * bytesize.MiB
	scratchBytes = 16 * bytesize.MiB
)

// act is what a scripted worker does with a task.
type act func(ctx context.Context, n *node, t *wire.SynthTask)

// node is a host with a synthesis worker and a device, both played by the test.
type node struct {
	w     *world
	name  job.Node
	bus   bus.Bus
	room  int // attempts that fit
	slots int
	// slotsSaid is how many slots its beats offer, when that differs from slots.
	slotsSaid int
	notReady  string
	flight    []flight.Report // of its synthesis worker
	act       act

	cancel context.CancelFunc
	wg     sync.WaitGroup
	poke   chan struct{}

	mu       sync.Mutex
	dead     bool // sends nothing any more
	boot     string
	instance string
	seq      uint64
	book     map[job.Attempt]ledger.Amounts
	stages   map[job.Attempt]job.Stage
	progress map[job.Attempt]uint64
	stuck    map[job.Attempt]bool
	stops    map[job.Attempt]context.CancelFunc
	done     map[job.Attempt]bool // sealed, or further: its delivery was acked
	seen     []job.Attempt        // every attempt that was begun, in order
	canary   *wire.Canary         // what its device proved last
	most     int                  // booked at once
}

// node starts one with room for so many attempts; act is nil for a worker that proves.
func (w *world) node(name job.Node, room int, play act, edits ...func(*node)) *node {
	w.t.Helper()
	if play == nil {
		play = prove
	}
	n := &node{
		w: w, name: name, room: room, slots: 2, act: play, poke: make(chan struct{}, 1), boot: "boot-" + uuid.NewString(),
		book: map[job.Attempt]ledger.Amounts{}, stages: map[job.Attempt]job.Stage{}, progress: map[job.Attempt]uint64{},
		stuck: map[job.Attempt]bool{}, stops: map[job.Attempt]context.CancelFunc{}, done: map[job.Attempt]bool{},
	}
	for _, edit := range edits {
		edit(n)
	}
	n.start()
	w.t.Cleanup(n.stop)
	return n
}

func (n *node) start() {
	n.bus = n.w.dial(string(n.name))
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.mu.Lock()
	n.instance, n.seq, n.dead = uuid.NewString(), 0, false
	n.mu.Unlock()
	stop, err := n.bus.Subscribe(wire.ControlSubject(n.name), n.control)
	n.w.check(err)
	queue, err := n.bus.Queue(ctx, bus.Consumer{
		Stream: wire.StreamSynth, Name: "synth-" + string(n.name), Subject: wire.SynthSubject(n.name), AckWait: lease,
	})
	n.w.check(err)
	n.wg.Go(func() { defer stop(); n.beats(ctx) })
	for range n.slots {
		n.wg.Go(func() { n.serve(ctx, queue) })
	}
}

// stop ends all its processes at once, as a power cut does; its book stays, as files would.
func (n *node) stop() {
	n.cancel()
	n.wg.Wait()
	n.bus.Close()
}

// crash is stop, and what the processes held is gone with them.
func (n *node) crash() {
	n.mu.Lock()
	n.dead = true
	n.mu.Unlock()
	n.stop()
	n.mu.Lock()
	clear(n.book)
	clear(n.stages)
	n.mu.Unlock()
}

func (n *node) beats(ctx context.Context) {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		n.beat(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-n.poke:
		}
	}
}

func (n *node) changed() {
	select {
	case n.poke <- struct{}{}:
	default:
	}
}

// beat sends the beats of both processes.
func (n *node) beat(ctx context.Context) {
	n.mu.Lock()
	n.seq++
	capacity := bytesize.Bytes(n.room)
	slots := max(n.slots, n.slotsSaid)
	state := wire.StateReady
	if n.notReady != "" {
		state = wire.StateNotReady
	}
	synth := &wire.Beat{
		Node: n.name, Boot: n.boot, Instance: n.instance, Role: wire.RoleSynth, Seq: n.seq, Build: "test", WireMin: 1,
		WireMax: wire.Version, State: state, Reason: n.notReady, Slots: slots, Flight: n.flight,
		Synth: []wire.SynthCircuit{{Circuit: toy.Circuit().ID(), SegmentBytes: segmentBytes, ScratchBytes: scratchBytes}},
		Host: &wire.HostReport{
			Capacity: ledger.Amounts{
				ledger.PoolRAM: capacity*(segmentBytes+scratchBytes) + bytesize.MiB, ledger.PoolSHM: capacity * segmentBytes,
			},
			BookComplete: true, At: time.Now(),
		},
	}
	gpu := &wire.Beat{
		Node: n.name, Boot: n.boot, Instance: n.instance + "-gpu", Role: wire.RoleGPU, Seq: n.seq, Build: "test", WireMin: 1,
		WireMax: wire.Version, State: state, Reason: n.notReady, Slots: 1,
		Devices: []wire.DeviceState{{
			Device: "cpu", UUID: "CPU-" + string(n.name), Healthy: true, Canary: n.canary,
			Circuits: []wire.DeviceCircuit{{Circuit: toy.Circuit().ID(), Ready: true, SRSBytes: bytesize.MiB / 2}},
		}},
	}
	for _, a := range slices.SortedFunc(maps.Keys(n.stages), func(a, b job.Attempt) int {
		return int(a.Fence) - int(b.Fence)
	}) {
		if !n.stuck[a] {
			n.progress[a]++
		}
		running := wire.Running{Attempt: a, Stage: n.stages[a], Progress: n.progress[a], Handoff: wire.HandoffSHM}
		if n.stages[a] == job.Synthesizing {
			synth.Running = append(synth.Running, running)
		} else {
			gpu.Running = append(gpu.Running, running)
		}
	}
	for a, amounts := range n.book {
		synth.Host.Book = append(synth.Host.Book, wire.Booking{Attempt: a, Amounts: amounts, Stage: n.stages[a], Alive: true})
	}
	n.mu.Unlock()
	for _, b := range []*wire.Beat{synth, gpu} {
		n.send(ctx, wire.BeatSubject(n.name), b)
	}
}

func (n *node) send(ctx context.Context, subject string, body wire.Body) {
	n.mu.Lock()
	dead := n.dead
	n.mu.Unlock()
	if dead {
		return
	}
	data, err := wire.Encode(body)
	if err != nil {
		n.w.t.Errorf("encode: %v", err)
		return
	}
	_ = n.bus.Send(ctx, bus.Message{Subject: subject, Data: data}) // at most once
}

func (n *node) control(m bus.Message) {
	var c wire.Control
	if err := wire.Decode(m.Data, &c); err != nil {
		n.w.t.Errorf("control: %v", err)
		return
	}
	if c.Kind == wire.ControlCanary {
		n.mu.Lock()
		n.canary = &wire.Canary{ID: c.Canary, OK: true}
		n.mu.Unlock()
		n.changed()
	}
	if c.Kind != wire.ControlCancel {
		return
	}
	n.mu.Lock()
	stop := n.stops[*c.Attempt]
	n.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// serve takes tasks for one slot.
func (n *node) serve(ctx context.Context, queue bus.Queue) {
	for {
		d, err := queue.Fetch(ctx)
		if err != nil {
			return
		}
		var t wire.SynthTask
		if err := wire.Decode(d.Message().Data, &t); err != nil {
			n.w.t.Errorf("task: %v", err)
			return
		}
		if !n.current(ctx, t.Attempt) {
			_ = d.Ack(ctx)
			continue
		}
		n.take(ctx, d, &t)
	}
}

// current asks the record whether an attempt owns its partition.
func (n *node) current(ctx context.Context, a job.Attempt) bool {
	j, err := n.w.store.Fetch(ctx, a.Job)
	if err != nil {
		return false
	}
	p := &j.Record.Partitions[a.Partition]
	return j.Record.State == job.Active && p.Fence == a.Fence && p.Stage.Running()
}

func (n *node) take(ctx context.Context, d bus.Delivery, t *wire.SynthTask) {
	a := t.Attempt
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	n.mu.Lock()
	if n.done[a] || n.stops[a] != nil { // delivered again
		n.mu.Unlock()
		_ = d.Ack(ctx)
		return
	}
	if len(n.book) >= n.room {
		n.w.t.Errorf("node %s: attempt %s does not fit: %d are booked", n.name, a, len(n.book))
	}
	n.book[a], n.stages[a], n.stops[a] = t.Amounts, job.Synthesizing, stop
	n.seen = append(n.seen, a)
	n.most = max(n.most, len(n.book))
	n.mu.Unlock()
	n.report(ctx, &wire.Report{Attempt: a, Stage: job.Synthesizing})
	n.changed()
	keep := make(chan struct{})
	n.wg.Go(func() { // as the real workers do
		ticker := time.NewTicker(lease / 3)
		defer ticker.Stop()
		for {
			select {
			case <-keep:
				return
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = d.InProgress(ctx)
			}
		}
	})
	n.act(ctx, n, t)
	close(keep)
	n.mu.Lock()
	n.done[a] = true
	delete(n.stops, a)
	n.mu.Unlock()
	// Even a worker that was told to stop settles its message.
	ackCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = d.Ack(ackCtx)
}

func (n *node) report(ctx context.Context, r *wire.Report) {
	r.Node = n.name
	n.send(ctx, wire.ReportSubject(n.name), r)
}

// stage moves an attempt on.
func (n *node) stage(ctx context.Context, a job.Attempt, s job.Stage) {
	n.mu.Lock()
	n.stages[a] = s
	n.mu.Unlock()
	n.report(ctx, &wire.Report{Attempt: a, Stage: s, Handoff: wire.HandoffSHM})
}

// free gives all bytes of an attempt back.
func (n *node) free(ctx context.Context, a job.Attempt) {
	n.mu.Lock()
	delete(n.book, a)
	delete(n.stages, a)
	n.mu.Unlock()
	n.report(context.WithoutCancel(ctx), &wire.Report{Attempt: a, Freed: true})
	n.changed()
}

// publish sends a result, as often as it takes.
func (n *node) publish(ctx context.Context, r *wire.Result) {
	r.Node, r.Device, r.Build, r.DeviceUUID = n.name, "cpu", "test", "CPU-"+string(n.name)
	data, err := wire.Encode(r)
	if err != nil {
		n.w.t.Errorf("encode result: %v", err)
		return
	}
	for ctx.Err() == nil {
		_, err := n.bus.Publish(ctx, bus.Message{Subject: wire.ResultSubject(n.name), ID: r.ID(), Data: data})
		if err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// prove plays a worker for whom all goes well.
func prove(ctx context.Context, n *node, t *wire.SynthTask) {
	n.stage(ctx, t.Attempt, job.Sealed)
	n.stage(ctx, t.Attempt, job.Proving)
	n.stage(ctx, t.Attempt, job.Proved)
	n.publish(ctx, &wire.Result{
		Attempt: t.Attempt, Outcome: job.OutcomeOK, Proof: n.w.made.proofs[t.Slice.SHA256], ParamsDigest: "abcd",
		Handoff: wire.HandoffSHM, Seconds: map[string]float64{"synthesis": 0.001, "start": 0.002},
	})
	n.free(ctx, t.Attempt)
}

// fails plays a worker whose attempt ends with a fault.
func fails(kind fault.Kind, message string, blame bool) act {
	return func(ctx context.Context, n *node, t *wire.SynthTask) {
		n.publish(ctx, &wire.Result{
			Attempt: t.Attempt, Outcome: job.OutcomeFailed, BlameDevice: blame,
			Fault: &fault.Report{Kind: kind, Stage: "prove", Message: message},
		})
		n.free(ctx, t.Attempt)
	}
}

// hangs plays a worker that goes on beating, and stays where it is until it is told to stop.
func hangs(ctx context.Context, n *node, t *wire.SynthTask) {
	<-ctx.Done()
	n.free(ctx, t.Attempt)
}

// sticks plays a worker that shows no progress and hears nothing.
func sticks(release <-chan struct{}) act {
	return func(ctx context.Context, n *node, t *wire.SynthTask) {
		n.mu.Lock()
		n.stuck[t.Attempt] = true
		n.stops[t.Attempt] = func() {}
		n.mu.Unlock()
		<-release
		prove(context.WithoutCancel(ctx), n, t)
	}
}

// each plays one after the other, the last one for all that follow.
func each(plays ...act) act {
	var mu sync.Mutex
	at := 0
	return func(ctx context.Context, n *node, t *wire.SynthTask) {
		mu.Lock()
		play := plays[min(at, len(plays)-1)]
		at++
		mu.Unlock()
		play(ctx, n, t)
	}
}

func (n *node) attempts() []job.Attempt {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.seen)
}

func (n *node) String() string { return fmt.Sprintf("node %s", n.name) }
