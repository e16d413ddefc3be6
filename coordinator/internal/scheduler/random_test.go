package scheduler_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// TestRandomHistories drives the core with random events beside a dumb model of ledger and records. At every step: no
// pool holds more than there is (1), the core's book is the ledger's, nobody overtakes a waiter that would have fitted
// too, every waiter has a reason (8). When the faults end, every partition that fits some node ends (3).
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := newRandom(t)
		for range rapid.IntRange(10, 120).Draw(t, "steps") {
			r.step()
			r.check()
		}
		r.heal()
	})
}

type random struct {
	*world
	t        *rapid.T
	circuits map[string]scheduler.CircuitView
	policy   job.Policy
	jobs     int
}

var randomKinds = []string{"a", "b", "c", "d"}

func newRandom(t *rapid.T) *random {
	cfg := scheduler.DefaultConfig()
	cfg.Ageing, cfg.GuessDefault = 20*time.Second, time.Duration(rapid.IntRange(1, 20).Draw(t, "guess"))*time.Second
	cfg.SealedAhead = 0 // then a device is open for all circuits or for none
	cfg.AdmitsMax = rapid.IntRange(1, 9).Draw(t, "admits")
	r := &random{world: newWorld(t, cfg), t: t, circuits: map[string]scheduler.CircuitView{}}
	r.policy = job.Policy{FailedMax: 1000, LostMax: 1000, BackoffMin: time.Second, BackoffMax: 8 * time.Second}
	r.onAdmit = r.inOrder
	size := rapid.IntRange(0, 6)
	for _, name := range randomKinds {
		ram, shm, srs := 1+size.Draw(t, "ram"), size.Draw(t, "shm"), size.Draw(t, "srs")
		r.circuits[name] = ready(kind(float64(ram), float64(shm), float64(srs), name))
	}
	for n := range rapid.IntRange(1, 3).Draw(t, "nodes") {
		devices := []string{"gpu0", "gpu1"}[:rapid.IntRange(1, 2).Draw(t, "devices")]
		only := maps.Clone(r.circuits)
		if len(only) > 1 && rapid.Bool().Draw(t, "partial") {
			delete(only, rapid.SampledFrom(randomKinds).Draw(t, "lacks"))
		}
		capacity, slots := rapid.IntRange(4, 20).Draw(t, "capacity"), rapid.IntRange(1, 8).Draw(t, "slots")
		r.addNode(nodeView(fmt.Sprint("n", n), float64(capacity), slots, only, devices...))
	}
	return r
}

// step lets one random thing happen.
func (r *random) step() {
	running := r.running()
	pick := func() job.Attempt { return rapid.SampledFrom(running).Draw(r.t, "attempt") }
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(r.nodes))).Draw(r.t, "node")
	switch what := rapid.IntRange(0, 15).Draw(r.t, "what"); {
	case what <= 1:
		r.jobs++
		r.addJob(job.ID(fmt.Sprintf("j%03d", r.jobs)), rapid.SampledFrom(randomKinds).Draw(r.t, "circuit"),
			rapid.IntRange(1, 6).Draw(r.t, "partitions"), rapid.IntRange(0, 1).Draw(r.t, "priority"))
	case what <= 5 && len(running) > 0:
		a := pick()
		stage := rapid.SampledFrom([]job.Stage{job.Synthesizing, job.Sealed, job.Proving}).Draw(r.t, "stage")
		r.progress(a, stage)
	case what <= 9 && len(running) > 0:
		r.end(pick(), rapid.SampledFrom([]job.Outcome{
			job.OutcomeOK, job.OutcomeOK, job.OutcomeOK, job.OutcomeFailed, job.OutcomeLost, job.OutcomeHandedBack,
		}).Draw(r.t, "outcome"))
	case what == 10:
		r.freeOne()
	case what == 11 && r.nodes[name].view.Ready:
		r.nodes[name].view.Ready = false
		r.apply(scheduler.NodeGone{Node: name})
	case what == 11:
		r.nodes[name].view.Ready = true
		r.seeNode(name)
	case what == 12:
		if _, refuses := r.refuse[name]; refuses {
			delete(r.refuse, name)
		} else if rapid.Bool().Draw(r.t, "refuse") {
			r.refuse[name] = "no"
		}
	case what == 13 && len(r.records) > 0:
		id := rapid.SampledFrom(slices.Sorted(maps.Keys(r.records))).Draw(r.t, "job")
		if rapid.IntRange(0, 3).Draw(r.t, "cancel") == 0 && r.records[id].State == job.Active {
			r.cancel(id)
		}
	case what == 14:
		if r.hold = !r.hold; !r.hold {
			r.answerAll()
		}
	default:
		r.tick(time.Duration(rapid.IntRange(1, 15).Draw(r.t, "seconds")) * time.Second)
	}
}

// running lists the attempts that own a partition, oldest job first.
func (r *random) running() []job.Attempt {
	var out []job.Attempt
	for _, id := range slices.Sorted(maps.Keys(r.records)) {
		rec := r.records[id]
		for i := range rec.Partitions {
			if rec.State == job.Active && rec.Partitions[i].Stage.Running() {
				out = append(out, rec.Attempt(i))
			}
		}
	}
	return out
}

func (r *random) end(a job.Attempt, outcome job.Outcome) {
	p := r.records[a.Job].Partitions[a.Partition]
	r.ended = append(r.ended, endedAttempt{a, p.Node})
	r.finish(scheduler.Ended{
		Attempt: a, Outcome: outcome, Device: time.Duration(1+a.Partition) * time.Second, Synth: time.Second,
	}, r.policy)
}

func (r *random) cancel(id job.ID) {
	rec := r.records[id]
	for i := range rec.Partitions {
		if p := rec.Partitions[i]; p.Stage.Running() {
			r.ended = append(r.ended, endedAttempt{rec.Attempt(i), p.Node})
		}
	}
	if err := rec.Cancel(nil, r.now); err != nil {
		r.t.Fatal(err)
	}
	r.seen(id)
}

func (r *random) freeOne() {
	if len(r.ended) > 0 {
		e := r.ended[0]
		r.ended = r.ended[1:]
		r.free(e.attempt, e.node)
	}
}

// inOrder checks that no waiter that goes before would have fitted where a partition goes.
func (r *random) inOrder(d *scheduler.Admit) {
	n := r.nodes[d.Place.Node]
	held := n.held()
	if d.From != nil {
		for pool, bytes := range n.holdings[*d.From].Amounts {
			held[pool] -= bytes
		}
	}
	mine := r.records[d.Attempt.Job]
	_, pinned := r.core.Pinned(d.Place.Node)
	for _, rec := range r.records {
		order := cmp.Or(cmp.Compare(mine.Priority, rec.Priority), rec.SubmittedAt.Compare(mine.SubmittedAt),
			cmp.Compare(rec.ID, mine.ID))
		if rec.State != job.Active {
			continue
		}
		for i := range rec.Partitions {
			p := &rec.Partitions[i]
			before := order < 0 || rec == mine && i < d.Attempt.Partition
			if !before || p.Stage != job.Waiting || len(p.Attempts) > 0 || r.isAsked(rec.ID, i) ||
				r.core.Promised(rec.ID, i) {
				continue
			}
			if rec.Circuit == mine.Circuit {
				if len(mine.Partitions[d.Attempt.Partition].Attempts) == 0 {
					r.t.Fatalf("%s goes before partition %d of job %s", d, i, rec.ID)
				}
				continue // the one that goes may have to go elsewhere than the other
			}
			view, ok := n.view.Devices[0].Circuits[rec.Circuit]
			if ok && !pinned && n.wouldHold(view.Choices[0], held) && !r.leaves(d.Place.Node, rec.Circuit) {
				r.t.Fatalf("%s goes before partition %d of job %s, which fits: %s are held, %v\n%s", d, i, rec.ID, held,
					r.core.Why(rec.ID), r.take())
			}
		}
	}
}

// leaves tells whether an asset of a circuit was evicted a moment ago: it can't be counted on.
func (r *random) leaves(node job.Node, circuit string) bool {
	return r.evicted[string(node)+"srs:"+circuit]
}

func (n *worldNode) wouldHold(needs scheduler.Needs, held ledger.Amounts) bool {
	need := maps.Clone(needs.Amounts)
	for _, a := range needs.Assets {
		if _, ok := n.assets[assetKey{a.Name, a.Pool}]; !ok {
			need[a.Pool] += a.Bytes
		}
	}
	for pool, bytes := range need {
		if held[pool]+bytes > n.view.Capacity[pool] {
			return false
		}
	}
	return true
}

func (r *random) check() {
	for name, n := range r.nodes {
		if !n.view.Ready {
			continue // gone, and forgotten some time
		}
		want := n.held()
		maps.DeleteFunc(want, func(_ ledger.Pool, bytes bytesize.Bytes) bool { return bytes == 0 })
		if diff := gocmp.Diff(want, r.core.Held(name)); diff != "" {
			r.t.Fatalf("the book of %s (-ledger +core):\n%s", name, diff)
		}
	}
	for id, rec := range r.records {
		waiting := 0
		for i := range rec.Partitions {
			if rec.State == job.Active && rec.Partitions[i].Stage == job.Waiting {
				waiting++
			}
		}
		reasons := r.core.Why(id)
		if len(reasons) != waiting {
			r.t.Fatalf("job %s: %d waiting, %d reasons", id, waiting, len(reasons))
		}
		for _, reason := range reasons {
			if reason.Code == "" || reason.Text == "" || reason.Code == scheduler.Memory && (reason.Missing <= 0 ||
				len(reason.Holders) == 0) {
				r.t.Fatalf("job %s: %+v", id, reason)
			}
		}
	}
}

// heal ends all faults and lets all attempts go on; then everything that fits must end.
func (r *random) heal() {
	clear(r.refuse)
	r.hold = false
	r.answerAll()
	for _, name := range slices.Sorted(maps.Keys(r.nodes)) {
		r.nodes[name].view.Ready = true
		r.seeNode(name)
	}
	quiet := 0
	for round := range 3000 {
		r.tick(time.Second)
		running := r.running()
		for i, a := range running {
			switch (round + i) % 3 {
			case 0:
				r.progress(a, job.Sealed)
			case 1:
				r.progress(a, job.Proving)
			default:
				r.end(a, job.OutcomeOK)
			}
		}
		for len(r.ended) > 0 {
			r.freeOne()
		}
		r.check()
		if quiet++; len(running) > 0 || r.core.Stats().Pausing > 0 {
			quiet = 0
		}
		if quiet > 30 {
			break // longer than ageing and refusals take
		}
	}
	active := 0
	for id, rec := range r.records {
		if rec.State != job.Active {
			continue
		}
		active++
		if r.fitsAny(rec.Circuit) {
			r.t.Fatalf("job %s has not ended: %+v\n%+v\n%s", id, r.core.Why(id), r.core.Stats(), r.take())
		}
		if code := r.core.Why(id)[0].Code; code != scheduler.Unschedulable && code != scheduler.NoParams {
			r.t.Fatalf("job %s fits nowhere: %+v", id, r.core.Why(id))
		}
	}
	if known := r.core.JobCount(); known != active {
		r.t.Fatalf("%d jobs are remembered, %d are active", known, active)
	}
	if s := r.core.Stats(); s.Running+s.Asked != 0 {
		r.t.Fatalf("attempts are left: %+v", s)
	}
}

func (r *random) fitsAny(circuit string) bool {
	for _, n := range r.nodes {
		view, ok := n.view.Devices[0].Circuits[circuit]
		empty := &worldNode{view: n.view}
		if ok && empty.wouldHold(view.Choices[0], ledger.Amounts{}) {
			return true
		}
	}
	return false
}
