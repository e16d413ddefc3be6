package scheduler_test

import (
	"maps"
	"slices"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world carries decisions out as a coordinator does, on a ledger and job records of its own, and fails the test when a
// decision breaks them. It is the dumb model beside the core.
type world struct {
	t       fataler
	core    *scheduler.Core
	now     time.Time
	records map[job.ID]*job.Record
	nodes   map[job.Node]*worldNode
	// refuse lets a node refuse what is admitted to it, with the reason; refuseJob does so on behalf of a job.
	refuse    map[job.Node]string
	refuseJob map[job.ID]string
	// held keeps Admits without outcome while hold is set, and Evicts while keepAssets is.
	hold, keepAssets bool
	pending          []*scheduler.Admit
	// log are the decisions since the last take.
	log []scheduler.Decision
	// freed are attempts whose bytes are gone and that were not handed over or released yet.
	freed map[job.Attempt]bool
	// ended are attempts that ended and whose bytes are not gone.
	ended  []endedAttempt
	events []scheduler.Event
	// evicted are the assets, as node and name, that are gone while the core does not know yet.
	evicted map[string]bool
	// asked are partitions that were refused while the core does not know yet.
	asked   map[job.Attempt]bool
	onAdmit func(*scheduler.Admit)
}

type endedAttempt struct {
	attempt job.Attempt
	node    job.Node
}

type worldNode struct {
	view     scheduler.NodeView
	holdings map[job.Attempt]scheduler.Holding
	assets   map[assetKey]ledger.Asset
	// unsure are assets that only came with reservations without outcome.
	unsure map[string]bool
}

type assetKey struct {
	name string
	pool ledger.Pool
}

// fataler is what tests, benchmarks and properties have in common.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newWorld(t fataler, cfg scheduler.Config) *world {
	core, err := scheduler.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, core: core, now: epoch, records: map[job.ID]*job.Record{}, nodes: map[job.Node]*worldNode{},
		refuse: map[job.Node]string{}, refuseJob: map[job.ID]string{}, freed: map[job.Attempt]bool{},
		asked: map[job.Attempt]bool{}, evicted: map[string]bool{},
	}
}

// apply gives the core an event and carries out what it decides, and what follows from that. Outcomes are reported
// after all decisions of an event were carried out, in their order.
func (w *world) apply(e scheduler.Event) {
	w.events = append(w.events, e)
	if len(w.events) > 1 {
		return
	}
	for count := 0; len(w.events) > 0; w.events = w.events[1:] {
		if count++; count > 1000 {
			w.t.Fatalf("outcomes lead to decisions for ever, the last is %s", w.log[len(w.log)-1])
		}
		if e, ok := w.events[0].(scheduler.Evicted); ok {
			delete(w.evicted, string(e.Node)+e.Asset)
		}
		if e, ok := w.events[0].(scheduler.Refused); ok {
			w.undo(e.Attempt)
			delete(w.asked, job.Attempt{Job: e.Attempt.Job, Partition: e.Attempt.Partition})
		}
		for _, d := range w.core.Apply(w.now, w.events[0]) {
			w.log = append(w.log, d)
			w.execute(d)
		}
	}
}

func (w *world) execute(d scheduler.Decision) {
	switch d := d.(type) {
	case *scheduler.Admit:
		if n := w.nodes[d.Place.Node]; n == nil || n.view.Draining || n.view.Cordoned || !n.view.Ready {
			w.t.Fatalf("%s: the node takes no work", d)
		}
		if w.onAdmit != nil {
			w.onAdmit(d)
		}
		if w.hold {
			w.pending = append(w.pending, d)
			w.reserve(d)
			return
		}
		w.answer(d)
	case *scheduler.Release:
		if n := w.nodes[d.Node]; n != nil {
			if _, ok := n.holdings[d.Attempt]; ok && !w.freed[d.Attempt] {
				w.t.Fatalf("%s, whose bytes are not gone", d)
			}
			delete(n.holdings, d.Attempt)
		}
		delete(w.freed, d.Attempt)
	case *scheduler.Evict:
		if !w.keepAssets {
			w.evict(d.Node, d.Asset)
		}
	case *scheduler.Refresh, *scheduler.Quarantine, *scheduler.Halt, *scheduler.Unhalt, *scheduler.Drifted:
	}
}

// answerAll gives those that were held their outcomes.
func (w *world) answerAll() {
	for len(w.pending) > 0 {
		again := *w.pending[0]
		w.pending = w.pending[1:]
		again.From = nil // reserve has done that
		w.answer(&again)
	}
}

// isAsked tells whether an Admit of a partition has no outcome.
func (w *world) isAsked(id job.ID, partition int) bool {
	return slices.ContainsFunc(w.pending, func(d *scheduler.Admit) bool {
		return d.Attempt.Job == id && d.Attempt.Partition == partition
	}) || w.asked[job.Attempt{Job: id, Partition: partition}]
}

// answer gives an Admit its outcome.
func (w *world) answer(d *scheduler.Admit) {
	r := w.records[d.Attempt.Job]
	if r.State != job.Active {
		w.apply(scheduler.Refused{Attempt: d.Attempt, Cause: "the job has ended", OfJob: true})
		return
	}
	cause, ofNode := w.refuse[d.Place.Node]
	if !w.nodes[d.Place.Node].view.Ready {
		cause, ofNode = "gone", true
	}
	if !ofNode {
		var ofJob bool
		if cause, ofJob = w.refuseJob[d.Attempt.Job]; !ofJob {
			w.reserve(d)
			a, err := r.Claim(d.Attempt.Partition, d.Place.Node, d.Place.Device, w.now)
			if err != nil || a != d.Attempt {
				w.t.Fatalf("%s: claim gives %s, %v", d, a, err)
			}
			for _, asset := range d.Needs.Assets {
				delete(w.nodes[d.Place.Node].unsure, asset.Name)
			}
			w.apply(scheduler.Granted{Attempt: a})
			w.seen(d.Attempt.Job)
			return
		}
	}
	w.reserve(d)
	w.asked[job.Attempt{Job: d.Attempt.Job, Partition: d.Attempt.Partition}] = true
	w.apply(scheduler.Refused{Attempt: d.Attempt, Cause: cause, OfJob: !ofNode})
}

// undo takes back a reservation that is refused, when the core hears of it.
func (w *world) undo(a job.Attempt) {
	for _, n := range w.nodes {
		if _, ok := n.holdings[a]; !ok {
			continue
		}
		delete(n.holdings, a)
		maps.DeleteFunc(n.assets, func(key assetKey, _ ledger.Asset) bool {
			for _, h := range n.holdings {
				if slices.Contains(h.Assets, key.name) {
					return false
				}
			}
			return n.unsure[key.name]
		})
	}
}

// reserve books an Admit and checks invariant 1.
func (w *world) reserve(d *scheduler.Admit) {
	n := w.nodes[d.Place.Node]
	if n == nil {
		w.t.Fatalf("%s: no such node", d)
	}
	if d.From != nil {
		if from, ok := n.holdings[*d.From]; !ok || !w.freed[*d.From] || d.From.Job == "" || len(from.Assets) == 0 &&
			len(d.Needs.Assets) > 0 {
			w.t.Fatalf("%s: nothing to hand over", d)
		}
		delete(n.holdings, *d.From)
		delete(w.freed, *d.From)
	}
	h := scheduler.Holding{Attempt: d.Attempt, Amounts: maps.Clone(d.Needs.Amounts)}
	for _, a := range d.Needs.Assets {
		h.Assets = append(h.Assets, a.Name)
		if _, ok := n.assets[assetKey{a.Name, a.Pool}]; !ok {
			n.assets[assetKey{a.Name, a.Pool}] = a
			n.unsure[a.Name] = true
		}
	}
	n.holdings[d.Attempt] = h
	for pool, held := range n.held() {
		if held > n.view.Capacity[pool] {
			w.t.Fatalf("%s: %s of %s on %s would be held, there are %s", d, held, pool, d.Place.Node, n.view.Capacity[pool])
		}
	}
}

func (n *worldNode) held() ledger.Amounts {
	held := ledger.Amounts{}
	for _, h := range n.holdings {
		for pool, bytes := range h.Amounts {
			held[pool] += bytes
		}
	}
	for key, a := range n.assets {
		held[key.pool] += a.Bytes
	}
	return held
}

func (w *world) evict(name job.Node, asset string) {
	n := w.nodes[name]
	w.evicted[string(name)+asset] = true
	for _, h := range n.holdings {
		if slices.Contains(h.Assets, asset) && !w.freed[h.Attempt] {
			w.apply(scheduler.Evicted{Node: name, Asset: asset})
			return
		}
	}
	maps.DeleteFunc(n.assets, func(key assetKey, _ ledger.Asset) bool { return key.name == asset })
	w.apply(scheduler.Evicted{Node: name, Asset: asset, OK: true})
}

// seeNode tells the core of a node, with its book.
func (w *world) seeNode(name job.Node) {
	n := w.nodes[name]
	clear(n.unsure) // the core takes what is in the book for granted
	view := n.view
	book := &scheduler.Book{Declared: true}
	for _, a := range slices.SortedFunc(maps.Keys(n.holdings), func(a, b job.Attempt) int {
		return slices.Compare([]byte(a.String()), []byte(b.String()))
	}) {
		book.Holdings = append(book.Holdings, n.holdings[a])
	}
	for _, key := range slices.SortedFunc(maps.Keys(n.assets), func(a, b assetKey) int {
		return slices.Compare([]byte(a.name+string(a.pool)), []byte(b.name+string(b.pool)))
	}) {
		book.Assets = append(book.Assets, n.assets[key])
	}
	view.Book = book
	w.apply(scheduler.NodeSeen{Node: view})
}

func (w *world) addNode(view scheduler.NodeView) {
	n := w.nodes[view.Node]
	if n == nil {
		n = &worldNode{holdings: map[job.Attempt]scheduler.Holding{}, assets: map[assetKey]ledger.Asset{},
			unsure: map[string]bool{}}
		w.nodes[view.Node] = n
	}
	n.view = view
	w.seeNode(view.Node)
}

func (w *world) addJob(id job.ID, circuit string, partitions, priority int) {
	w.addJobOf(job.MainTenant, 0, id, circuit, partitions, priority)
}

// addJobOf adds a job of a tenant that must end within a time, 0 for any.
func (w *world) addJobOf(
	tenant job.Tenant, within time.Duration, id job.ID, circuit string, partitions, priority int,
) {
	r := &job.Record{
		Version: job.RecordVersion, ID: id, Tenant: tenant, Circuit: circuit, Priority: priority, SubmittedAt: w.now,
		State: job.Active,
	}
	if within > 0 {
		deadline := w.now.Add(within)
		r.Deadline = &deadline
	}
	for range partitions {
		r.Partitions = append(r.Partitions, job.Partition{Stage: job.Waiting, StageAt: w.now})
	}
	w.records[id] = r
	w.seen(id)
}

// seen tells the core of a job's record.
func (w *world) seen(id job.ID) {
	r := w.records[id]
	if r.State != job.Active {
		w.apply(scheduler.JobGone{Job: id})
		return
	}
	w.apply(scheduler.JobSeen{Job: scheduler.ViewOf(r)})
}

// progress moves an attempt on.
func (w *world) progress(a job.Attempt, stage job.Stage) {
	if _, err := w.records[a.Job].Advance(a, stage, w.now); err != nil {
		w.t.Fatal(err)
	}
	w.apply(scheduler.Progress{Attempt: a, Stage: stage})
}

// finish ends an attempt and tells the core, bytes apart.
func (w *world) finish(e scheduler.Ended, policy job.Policy) {
	r, a := w.records[e.Attempt.Job], e.Attempt
	var err error
	switch e.Outcome {
	case job.OutcomeOK:
		if err = r.Accept(a, []byte{1}, w.now); err == nil && r.VerifiedCount() == len(r.Partitions) {
			err = r.Complete(job.Object{}, w.now)
		}
	case job.OutcomeFailed:
		err = r.Fail(a, &fault.Report{Kind: fault.Device, Message: "broken"}, policy, w.now)
	case job.OutcomeLost:
		err = r.Lose(a, "gone", policy, w.now)
	case job.OutcomeHandedBack:
		err = r.HandBack(a, "drain", 0, w.now)
	case job.OutcomeCancelled:
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(e)
	w.seen(a.Job)
}

// free says that an attempt's bytes are gone.
func (w *world) free(a job.Attempt, node job.Node) {
	w.freed[a] = true
	w.apply(scheduler.Freed{Attempt: a, Node: node})
}

func (w *world) tick(d time.Duration) {
	w.now = w.now.Add(d)
	w.apply(scheduler.Tick{})
}

// take gives the decisions since the last time, one per line.
func (w *world) take() string {
	text := ""
	for _, d := range w.log {
		text += d.String() + "\n"
	}
	w.log = nil
	return text
}

// gib makes amounts of whole GiB.
func gib(n float64) bytesize.Bytes { return bytesize.Bytes(n * float64(bytesize.GiB)) }

// kind is a circuit in tests: what one partition takes, and what is shared.
func kind(ram, shm, srs float64, circuit string) scheduler.Needs {
	needs := scheduler.Needs{Amounts: ledger.Amounts{ledger.PoolRAM: gib(ram)}}
	if shm > 0 {
		needs.Amounts[ledger.PoolSHM] = gib(shm)
	}
	if srs > 0 {
		needs.Assets = []ledger.Asset{{
			Name: "srs:" + circuit, Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: gib(srs),
		}}
	}
	return needs
}

func ready(needs ...scheduler.Needs) scheduler.CircuitView {
	return scheduler.CircuitView{Ready: true, Choices: needs}
}

func nodeView(
	name string, ram float64, slots int, circuits map[string]scheduler.CircuitView, devices ...string,
) scheduler.NodeView {
	one := scheduler.Versions{Min: 1, Max: 1}
	v := scheduler.NodeView{
		Node: job.Node(name), Ready: true, SynthSlots: slots, Wire: one,
		Capacity: ledger.Amounts{ledger.PoolRAM: gib(ram), ledger.PoolSHM: gib(ram)},
	}
	for _, d := range devices {
		v.Devices = append(v.Devices, scheduler.DeviceView{
			Device: job.Device(d), Healthy: true, Instance: "1", Wire: one, Circuits: circuits,
		})
	}
	return v
}
