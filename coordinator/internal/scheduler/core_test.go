package scheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

func TestConfigNamesAllThatIsWrong(t *testing.T) {
	t.Parallel()
	cfg := scheduler.DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	bad := scheduler.Config{Guess: map[string]time.Duration{"c": 0}, WorkAhead: -1}
	err := bad.Validate()
	for _, want := range []string{"guess.c", "guess_default", "ageing", "load_rate", "work_ahead", "wire", "admits_max"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if _, err := scheduler.New(bad); err == nil {
		t.Error("a core with a bad configuration")
	}
}

func TestViewOfRecord(t *testing.T) {
	t.Parallel()
	policy := job.DefaultPolicy()
	for name, test := range map[string]struct {
		change func(*job.Record)
		want   scheduler.PartitionView
	}{
		"new": {func(*job.Record) {}, scheduler.PartitionView{Stage: job.Waiting, StageAt: epoch}},
		"claimed": {
			func(r *job.Record) { claim(t, r) },
			scheduler.PartitionView{Stage: job.Reserved, Fence: 1, Node: "n1", Device: "gpu0", StageAt: epoch},
		},
		"a failed one avoids the device": {
			func(r *job.Record) {
				a := claim(t, r)
				_ = r.Fail(a, &fault.Report{Kind: fault.Device, Message: "out of memory"}, policy, epoch)
			},
			scheduler.PartitionView{
				Stage: job.Waiting, Fence: 2, StageAt: epoch, NotBefore: epoch.Add(time.Second),
				Avoid: scheduler.Place{Node: "n1", Device: "gpu0"}, Last: "on n1/gpu0 failed: out of memory",
			},
		},
		"a lost one avoids the node": {
			func(r *job.Record) { _ = r.Lose(claim(t, r), "gone", policy, epoch) },
			scheduler.PartitionView{
				Stage: job.Waiting, Fence: 2, StageAt: epoch, NotBefore: epoch.Add(time.Second),
				Avoid: scheduler.Place{Node: "n1"}, Last: "on n1/gpu0 was lost: gone",
			},
		},
		"one that was handed back avoids the node": {
			func(r *job.Record) { _ = r.HandBack(claim(t, r), "drain", 0, epoch) },
			scheduler.PartitionView{
				Stage: job.Waiting, Fence: 2, StageAt: epoch, Avoid: scheduler.Place{Node: "n1"},
				Last: "on n1/gpu0 was handed back: drain",
			},
		},
		"a cancelled one is stopped": {
			func(r *job.Record) { claim(t, r); _ = r.Cancel(nil, epoch) },
			scheduler.PartitionView{Stage: job.StageStopped, Fence: 2, Node: "n1", Device: "gpu0", StageAt: epoch},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &job.Record{ID: "j", State: job.Active, Partitions: []job.Partition{{Stage: job.Waiting, StageAt: epoch}}}
			test.change(r)
			if diff := gocmp.Diff(test.want, scheduler.ViewOf(r).Partitions[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func claim(t *testing.T, r *job.Record) job.Attempt {
	t.Helper()
	a, err := r.Claim(0, "n1", "gpu0", epoch)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// An older view of a job, as it comes when messages overtake each other, changes nothing.
func TestOldViewsChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scheduler.DefaultConfig())
	w.addNode(nodeView("n1", 10, 1, map[string]scheduler.CircuitView{"c": ready(kind(1, 0, 0, "c"))}, "gpu0"))
	w.addJob("a", "c", 1, 0)
	old := scheduler.ViewOf(w.records["a"])
	old.Partitions[0] = scheduler.PartitionView{Stage: job.Waiting}
	if got := w.core.Apply(w.now, scheduler.JobSeen{Job: old}); len(got) != 0 {
		t.Errorf("decided %v", got)
	}
	if s := w.core.Stats(); s.Running != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

// What is reported twice, late or about strangers changes nothing and breaks nothing.
func TestStrayEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scheduler.DefaultConfig())
	w.addNode(nodeView("n1", 10, 1, map[string]scheduler.CircuitView{"c": ready(kind(1, 0, 0, "c"))}, "gpu0"))
	w.addJob("a", "c", 1, 0)
	stranger := job.Attempt{Job: "x", Fence: 7}
	known := job.Attempt{Job: "a", Fence: 1}
	want := w.core.Held("n1")
	for _, e := range []scheduler.Event{
		scheduler.Granted{Attempt: stranger}, scheduler.Granted{Attempt: known}, scheduler.Refused{Attempt: stranger},
		scheduler.Refused{Attempt: known}, scheduler.Progress{Attempt: stranger, Stage: job.Sealed},
		scheduler.Ended{Attempt: stranger, Outcome: job.OutcomeOK}, scheduler.JobGone{Job: "x"},
		scheduler.NodeGone{Node: "x"},
		scheduler.Shrunk{Attempt: stranger, Node: "n1", Amounts: ledger.Amounts{"ram": 1}}, scheduler.Evicted{Node: "x"},
		scheduler.Evicted{Node: "n1", Asset: "x", OK: true}, scheduler.Readmitted{}, scheduler.Resumed{},
	} {
		if got := w.core.Apply(w.now.Add(-time.Hour), e); len(got) != 0 {
			t.Errorf("%T: decided %v", e, got)
		}
	}
	if diff := gocmp.Diff(want, w.core.Held("n1")); diff != "" {
		t.Error(diff)
	}
	// Bytes that are gone are always released, whoever held them.
	for _, e := range []scheduler.Freed{{Attempt: stranger, Node: "n1"}, {Attempt: stranger, Node: "x"}} {
		got := w.core.Apply(w.now, e)
		if len(got) != 1 || got[0].String() != fmt.Sprintf("release %s on %s", stranger, e.Node) {
			t.Errorf("decided %v", got)
		}
	}
}

// B33: workers that register and drop every second leave nothing behind, and work goes on.
func TestB33FlappingNodesAreForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scheduler.DefaultConfig())
	circuits := map[string]scheduler.CircuitView{"c": ready(kind(1, 0, 1, "c"))}
	w.addNode(nodeView("steady", 10, 4, circuits, "gpu0"))
	w.addJob("a", "c", 10, 0)
	done := 0
	for i := range 180 {
		name := job.Node(fmt.Sprint("flaps", i))
		v := nodeView(string(name), 10, 4, nil, "gpu0")
		w.addNode(v)
		w.tick(time.Second)
		w.apply(scheduler.NodeGone{Node: name})
		delete(w.nodes, name)
		w.tick(time.Second)
		for p := range w.records["a"].Partitions {
			if r := w.records["a"]; i%10 == 0 && r.Partitions[p].Stage.Running() {
				a := r.Attempt(p)
				w.finish(scheduler.Ended{Attempt: a, Outcome: job.OutcomeOK}, job.DefaultPolicy())
				w.free(a, "steady")
				done++
				break
			}
		}
	}
	if done != 10 || w.core.NodeCount() != 1 {
		t.Errorf("%d partitions done, %d nodes known", done, w.core.NodeCount())
	}
}

// A request over what every node has says both numbers, and is classified.
func TestB41RefusedWithBothNumbers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scheduler.DefaultConfig())
	circuits := map[string]scheduler.CircuitView{"c": ready(kind(10, 0, 20, "c"))}
	w.addNode(nodeView("n1", 29.7, 1, circuits, "gpu0"))
	w.addNode(nodeView("n2", 12, 1, circuits, "gpu0"))
	err := w.core.Fits("c")
	if fault.KindOf(err) != fault.Exhausted || err.Error() !=
		"unschedulable: a partition of c needs 30 GiB of ram, the largest node n1 has 29.7 GiB" {
		t.Errorf("%v", err)
	}
	w.addNode(nodeView("n3", 30, 1, circuits, "gpu0"))
	if err := w.core.Fits("c"); err != nil {
		t.Error(err)
	}
}

// A waiter that no node could take so far is held up by nobody, whatever the numbers: the estimate says so, too.
func TestLeftIsKnownOnlyWhenSomethingCanRun(t *testing.T) {
	t.Parallel()
	cfg := scheduler.DefaultConfig()
	cfg.Guess = map[string]time.Duration{"c": 10 * time.Second}
	w := newWorld(t, cfg)
	w.addJob("a", "c", 4, 0)
	if _, known := w.core.Left("a"); known {
		t.Error("known without a node")
	}
	w.addNode(nodeView("n1", 10, 4, map[string]scheduler.CircuitView{"c": ready(kind(1, 0, 0, "c"))}, "gpu0"))
	if left, known := w.core.Left("a"); !known || left != 40*time.Second {
		t.Errorf("%s, %v: want 4 partitions of 10 s one after the other", left, known)
	}
	if running, left := w.core.Drain(""); running != 3 || left != 30*time.Second {
		t.Errorf("%d running, %s left", running, left)
	}
}

// nodeWithBook tells the core of a node n1 of 10 GiB that proves "c", with a book.
func nodeWithBook(w *world, needs scheduler.Needs, book scheduler.Book, capacity ledger.Amounts) {
	v := nodeView("n1", 10, 1, map[string]scheduler.CircuitView{"c": ready(needs)}, "gpu0")
	if capacity != nil {
		v.Capacity = capacity
	}
	book.Declared = true
	v.Book = &book
	w.core.Apply(w.now, scheduler.NodeSeen{Node: v})
}

func TestBooks(t *testing.T) {
	t.Parallel()
	held := scheduler.Holding{Attempt: job.Attempt{Job: "x", Fence: 1}, Amounts: ledger.Amounts{"shm": gib(4)}}
	asset := func(name string, bytes float64) []ledger.Asset {
		return []ledger.Asset{{Name: name, Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: gib(bytes)}}
	}
	for name, test := range map[string]struct {
		needs    scheduler.Needs
		book     scheduler.Book
		capacity ledger.Amounts
		missing  float64 // 0: it is admitted
	}{
		"an asset that is there counts once":       {kind(6, 0, 4, "c"), scheduler.Book{Assets: asset("srs:c", 4)}, nil, 0},
		"an asset that will grow counts in full":   {kind(6, 0, 4, "c"), scheduler.Book{Assets: asset("srs:c", 5)}, nil, 1},
		"an asset that is smaller than it will be": {kind(7, 0, 3, "c"), scheduler.Book{Assets: asset("srs:c", 1)}, nil, 0},
		"free segments give way": {
			kind(8, 0, 0, "c"), scheduler.Book{Assets: asset(ledger.AssetSegments, 6)}, nil, 0,
		},
		"others' bytes do not": {
			kind(8, 8, 0, "c"), scheduler.Book{Holdings: []scheduler.Holding{held}}, nil, 2,
		},
		"a pool that holds more than there is stops all grants": {
			kind(1, 0, 0, "c"), scheduler.Book{Holdings: []scheduler.Holding{held}},
			ledger.Amounts{"ram": gib(10), "shm": gib(3)}, 1,
		},
		"growth is booked too": {
			kind(7, 0, 4, "c"), scheduler.Book{Assets: asset("srs:c", 2), Holdings: []scheduler.Holding{{
				Attempt: held.Attempt, Amounts: ledger.Amounts{"ram": gib(0.5)}, Assets: []string{"srs:c"},
			}}}, ledger.Amounts{"ram": gib(11)}, 0.5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, scheduler.DefaultConfig())
			nodeWithBook(w, test.needs, test.book, test.capacity)
			out := w.core.Apply(w.now, scheduler.JobSeen{Job: scheduler.JobView{
				ID: "a", Circuit: "c", Partitions: []scheduler.PartitionView{{Stage: job.Waiting}},
			}})
			why := w.core.Why("a")
			switch {
			case test.missing == 0:
				want := test.needs.Amounts["ram"]
				for _, a := range test.needs.Assets {
					want += a.Bytes
				}
				if len(out) != 1 || out[0].String() != "admit a.0.1 to n1/gpu0" || w.core.Held("n1")["ram"] != want {
					t.Errorf("decided %v, since %+v; %s are held", out, why, w.core.Held("n1"))
				}
			case len(out) != 0 || len(why) != 1 || why[0].Code != scheduler.Memory || why[0].Missing != gib(test.missing):
				t.Errorf("decided %v, since %+v", out, why)
			}
		})
	}
}

// A growing asset grows once, however many need it.
func TestB40GrowingAssetGrowsOnce(t *testing.T) {
	t.Parallel()
	cfg := scheduler.DefaultConfig()
	cfg.GuessDefault = time.Second
	w := newWorld(t, cfg)
	nodeWithBook(w, kind(2, 0, 3, "c"), scheduler.Book{Assets: []ledger.Asset{
		{Name: "srs:c", Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: gib(1)},
	}}, nil)
	out := w.core.Apply(w.now, scheduler.JobSeen{Job: scheduler.JobView{
		ID: "a", Circuit: "c", Partitions: make([]scheduler.PartitionView, 0),
	}})
	if why := w.core.Why("a"); len(out)+len(why) != 0 {
		t.Fatalf("a job without partitions: %v, %v", out, why)
	}
	out = w.core.Apply(w.now, scheduler.JobSeen{Job: scheduler.JobView{
		ID: "b", Circuit: "c", Partitions: []scheduler.PartitionView{{Stage: job.Waiting}, {Stage: job.Waiting}},
	}})
	if held := w.core.Held("n1")["ram"]; len(out) != 2 || held != gib(7) {
		t.Errorf("%v, %s are held", out, held)
	}
}

// One event admits a bounded number of partitions; the outcomes of these carry on until all are admitted.
func TestAdmitsPerEventAreBounded(t *testing.T) {
	t.Parallel()
	cfg := scheduler.DefaultConfig()
	cfg.GuessDefault, cfg.AdmitsMax = time.Millisecond, 7
	w := newWorld(t, cfg)
	w.addJob("a", "c", 100, 0)
	v := nodeView("n1", 200, 100, map[string]scheduler.CircuitView{"c": ready(kind(1, 0, 0, "c"))}, "gpu0", "gpu1")
	w.nodes["n1"] = &worldNode{
		view: v, holdings: map[job.Attempt]scheduler.Holding{}, assets: map[assetKey]ledger.Asset{},
		unsure: map[string]bool{},
	}
	v.Book = &scheduler.Book{Declared: true}
	out := w.core.Apply(w.now, scheduler.NodeSeen{Node: v})
	if len(out) != 7 {
		t.Fatalf("%d decisions for one event", len(out))
	}
	for _, d := range out {
		w.execute(d)
	}
	if s := w.core.Stats(); s.Running != 100 {
		t.Errorf("%+v", s)
	}
}
