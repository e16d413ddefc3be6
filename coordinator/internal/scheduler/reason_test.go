package scheduler_test

import (
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// shmFull is what a synthesis worker says of a folder that others have filled.
const shmFull = "synthesis worker is not ready: c: segment needs 80 MiB, /dev/shm/proofrack (memory) has 4 MiB of " +
	"64 MiB: 0 B in 0 segments, 0 B free for reuse, 60 MiB of others"

// lacking is a circuit that a device can't prove.
func lacking(what string) map[string]scheduler.CircuitView {
	return map[string]scheduler.CircuitView{"c": {Missing: what}}
}

// withoutSynth is what a device says of a circuit while no synthesis worker of its node takes work.
func withoutSynth() map[string]scheduler.CircuitView {
	return lacking("no synthesis worker of the node knows circuit c")
}

// A place of the rack that could run the job but for one thing.
type spoiled struct {
	name string
	view func() scheduler.NodeView
	want scheduler.Reason
}

func edited(circuits map[string]scheduler.CircuitView, edit func(*scheduler.NodeView)) func() scheduler.NodeView {
	return func() scheduler.NodeView {
		v := nodeView("n1", 9, 1, circuits, "gpu0")
		edit(&v)
		return v
	}
}

func unavailable(text string) scheduler.Reason {
	return scheduler.Reason{Code: scheduler.Unavailable, Text: "no device takes work: " + text}
}

func noParams(text string) scheduler.Reason {
	return scheduler.Reason{Code: scheduler.NoParams, Text: "no worker has parameters for c: " + text}
}

func runs() map[string]scheduler.CircuitView {
	return map[string]scheduler.CircuitView{"c": ready(kind(2, 1, 0, "c"))}
}

func spoiledNodes() []spoiled {
	unhealthy := func(reason string) func(*scheduler.NodeView) {
		return func(v *scheduler.NodeView) { v.Devices[0].Healthy, v.Devices[0].Reason = false, reason }
	}
	notReady := func(reason string) func(*scheduler.NodeView) {
		return func(v *scheduler.NodeView) { v.Ready, v.Reason, v.SynthSlots = false, reason, 0 }
	}
	noGPU := func(reason string) func(*scheduler.NodeView) {
		return func(v *scheduler.NodeView) { v.Devices, v.NoDevice = nil, reason }
	}
	lost := "worker is not-ready: device gpu0: no parameters: /params/c.params is missing"
	return []spoiled{
		{"B81: /dev/shm is full", edited(withoutSynth(), notReady(shmFull)), unavailable("n1 is not ready: " + shmFull)},
		{
			"no synthesis worker", edited(withoutSynth(), notReady("no synthesis worker")),
			unavailable("n1 is not ready: no synthesis worker"),
		},
		{
			"a synthesis worker without a slot", edited(runs(), func(v *scheduler.NodeView) { v.SynthSlots = 0 }),
			unavailable("n1 has no synthesis worker with a slot"),
		},
		{"no GPU worker", edited(nil, noGPU("no GPU worker")), unavailable("n1 has no device: no GPU worker")},
		{
			"a GPU worker without a driver", edited(nil, noGPU("GPU worker: NVML library not found")),
			unavailable("n1 has no device: GPU worker: NVML library not found"),
		},
		{
			"neither worker", edited(nil, func(v *scheduler.NodeView) {
				v.Ready, v.Reason, v.Devices, v.NoDevice = false, "no synthesis worker", nil, "no GPU worker"
			}),
			unavailable("n1 is not ready: no synthesis worker; n1 has no device: no GPU worker"),
		},
		{"draining", edited(runs(), func(v *scheduler.NodeView) { v.Draining = true }), unavailable("n1 is draining")},
		{"cordoned", edited(runs(), func(v *scheduler.NodeView) { v.Cordoned = true }), unavailable("n1 is cordoned")},
		{
			"a drained node whose workers have left", edited(withoutSynth(), func(v *scheduler.NodeView) {
				v.Draining, v.Ready, v.Reason = true, false, "no synthesis worker"
			}), unavailable("n1 is draining"),
		},
		{
			"other versions", edited(runs(), func(v *scheduler.NodeView) { v.Wire = scheduler.Versions{Min: 7, Max: 8} }),
			unavailable("n1/gpu0 speaks other versions (coordinator 1 to 1, synthesis 7 to 8, device 1 to 1)"),
		},
		{
			"B06: a file is missing", edited(lacking("/params/c.params is missing"), func(*scheduler.NodeView) {}),
			noParams("n1/gpu0: /params/c.params is missing"),
		},
		{
			"B06: a file is missing, so the GPU worker is not ready",
			edited(lacking("/params/c.params is missing"), unhealthy(lost)), noParams("n1/gpu0: /params/c.params is missing"),
		},
		{
			"parameters are still being read",
			edited(lacking("parameters are not looked at yet"), func(*scheduler.NodeView) {}),
			noParams("n1/gpu0: parameters are not looked at yet"),
		},
		{
			"no synthesis worker knows the circuit", edited(withoutSynth(), func(*scheduler.NodeView) {}),
			noParams("n1/gpu0: no synthesis worker of the node knows circuit c"),
		},
		{
			"the device is not to prove it", edited(nil, func(*scheduler.NodeView) {}),
			noParams("n1/gpu0: it is not set to prove this"),
		},
		{"a dead engine", edited(runs(), unhealthy("engine: signal: killed")), unavailable(
			"n1/gpu0 is not healthy: engine: signal: killed")},
		{
			"a dead engine that has not read parameters",
			edited(lacking("parameters are not looked at yet"), unhealthy("engine is starting")),
			unavailable("n1/gpu0 is not healthy: engine is starting, and parameters are not looked at yet"),
		},
		{
			"quarantine", edited(runs(), func(v *scheduler.NodeView) {
				v.Devices[0].Quarantined, v.Devices[0].Reason = true, "3 faults in a row"
			}), unavailable("n1/gpu0 is in quarantine: 3 faults in a row"),
		},
		{
			"B41: too large", edited(map[string]scheduler.CircuitView{"c": ready(kind(10, 1, 0, "c"))},
				func(*scheduler.NodeView) {}),
			scheduler.Reason{
				Code: scheduler.Unschedulable, Pool: ledger.PoolRAM, Need: gib(10), Free: gib(9), Missing: gib(1),
				Place: scheduler.Place{Node: "n1"},
				Text:  "unschedulable: a partition of c needs 10 GiB of ram, the largest node n1 has 9 GiB",
			},
		},
	}
}

// whyOf is the one reason of a job that waits.
func whyOf(t *testing.T, core *scheduler.Core) scheduler.Reason {
	t.Helper()
	why := core.Why("a")
	if len(why) != 1 {
		t.Fatalf("%d reasons: %+v", len(why), why)
	}
	return why[0]
}

func wantReason(t *testing.T, want, got scheduler.Reason) {
	t.Helper()
	if d := gocmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Every wait has a true reason (invariant 8): what keeps the only node from the work is told, in its worker's words,
// and nothing that only follows from it. Once it is gone the work starts.
func TestEachObstacleIsTheReason(t *testing.T) {
	t.Parallel()
	for _, test := range spoiledNodes() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, scheduler.DefaultConfig())
			w.addJob("a", "c", 1, 0)
			wantReason(t, scheduler.Reason{Code: scheduler.NoNode, Text: "no node"}, whyOf(t, w.core))
			w.addNode(test.view())
			wantReason(t, test.want, whyOf(t, w.core))
			w.addNode(nodeView("n1", 9, 1, runs(), "gpu0"))
			if why := w.core.Why("a"); len(why) != 0 {
				t.Errorf("it still waits: %+v", why)
			}
		})
	}
}

// Any two nodes with something in their way are both told of, and a third one that could run it ends the wait for both.
func TestAllObstaclesAreTold(t *testing.T) {
	t.Parallel()
	for _, first := range spoiledNodes() {
		for _, second := range spoiledNodes() {
			w := newWorld(t, scheduler.DefaultConfig())
			w.addJob("a", "c", 1, 0)
			one, two := first.view(), second.view()
			two.Node = "n2"
			w.addNode(one)
			w.addNode(two)
			why := whyOf(t, w.core)
			for _, name := range []string{"n1", "n2"} {
				if why.Code != scheduler.Unschedulable && !strings.Contains(why.Text, name) {
					t.Errorf("%s and %s: %s is not told of: %s", first.name, second.name, name, why.Text)
				}
			}
			onlyParams := first.want.Code == scheduler.NoParams && second.want.Code == scheduler.NoParams
			if (why.Code == scheduler.NoParams) != onlyParams {
				t.Errorf("%s and %s: %s", first.name, second.name, why.Code)
			}
			if (why.Code == scheduler.Unschedulable) != (w.core.Fits("c") != nil) {
				t.Errorf("%s and %s: %s, but to a submit it is %v", first.name, second.name, why.Code, w.core.Fits("c"))
			}
			w.addNode(nodeView("n3", 9, 1, runs(), "gpu0"))
			if why := w.core.Why("a"); len(why) != 0 {
				t.Errorf("%s and %s: it still waits: %+v", first.name, second.name, why)
			}
		}
	}
}

// B41 is about nodes that can't hold it whatever happens: one whose worker is away for a moment is no such node.
func TestB41OnlyWhatNoKnownNodeHoldsIsUnschedulable(t *testing.T) {
	t.Parallel()
	large := map[string]scheduler.CircuitView{"c": ready(kind(10, 1, 0, "c"))}
	for name, test := range map[string]struct {
		second func() scheduler.NodeView
		want   string // "" : it may fit
	}{
		"alone": {nil, "the largest node n1 has 9 GiB"},
		"a large node without a synthesis worker": {
			func() scheduler.NodeView { return nodeView("n2", 20, 0, withoutSynth(), "gpu0") }, "",
		},
		"a large node without a GPU worker": {func() scheduler.NodeView { return nodeView("n2", 20, 1, nil) }, ""},
		"a large node that drains": {func() scheduler.NodeView {
			v := nodeView("n2", 20, 1, large, "gpu0")
			v.Draining = true
			return v
		}, ""},
		"a node whose host has not reported": {func() scheduler.NodeView {
			v := nodeView("n2", 0, 1, withoutSynth(), "gpu0")
			v.Capacity = nil
			return v
		}, ""},
		"a large node that is not to prove it": {
			func() scheduler.NodeView { return nodeView("n2", 20, 1, nil, "gpu0") }, "the largest node n1 has 9 GiB",
		},
		"a smaller node without a synthesis worker": {
			func() scheduler.NodeView { return nodeView("n2", 3, 0, withoutSynth(), "gpu0") }, "the largest node n1 has 9 GiB",
		},
		"a larger node that is too small as well": {
			func() scheduler.NodeView { return nodeView("n2", 9.5, 0, withoutSynth(), "gpu0") },
			"the largest node n2 has 9.5 GiB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, scheduler.DefaultConfig())
			w.addJob("a", "c", 1, 0)
			w.addNode(nodeView("n1", 9, 1, large, "gpu0"))
			if test.second != nil {
				w.addNode(test.second())
			}
			err := w.core.Fits("c")
			if (err != nil) != (test.want != "") || err != nil && !strings.HasSuffix(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if why := whyOf(t, w.core); (why.Code == scheduler.Unschedulable) != (test.want != "") {
				t.Errorf("%+v", why)
			}
		})
	}
}

// Devices that could run it but for bytes, order or time.
func TestWaitsForBytesAndTurns(t *testing.T) {
	t.Parallel()
	at := scheduler.Place{Node: "n1", Device: "gpu0"}
	other := job.Attempt{Job: "x", Fence: 3}
	held := func(limbo bool) *scheduler.Book {
		return &scheduler.Book{Declared: true, Holdings: []scheduler.Holding{
			{Attempt: other, Amounts: ledger.Amounts{ledger.PoolRAM: gib(5), ledger.PoolSHM: gib(8.5)}, Limbo: limbo},
		}}
	}
	memory := scheduler.Reason{
		Code: scheduler.Memory, Place: at, Pool: ledger.PoolSHM, Need: gib(1), Free: gib(0.5), Missing: gib(0.5),
		Holders: []scheduler.Holder{{Name: "x.0.3", Bytes: gib(8.5)}},
		Text:    "needs 1 GiB of shm on n1, 512 MiB are free, 512 MiB are missing; held by x.0.3 (8.5 GiB)",
	}
	limbo := memory
	limbo.Holders = []scheduler.Holder{{Name: "x.0.3 (gone, not proved to be)", Bytes: gib(8.5)}}
	limbo.Text = strings.Replace(memory.Text, "x.0.3", "x.0.3 (gone, not proved to be)", 1)
	for name, test := range map[string]struct {
		book    *scheduler.Book
		prepare func(*world)
		want    scheduler.Reason
	}{
		"bytes are held":          {held(false), func(*world) {}, memory},
		"bytes are held in limbo": {held(true), func(*world) {}, limbo},
		"the node has not declared what it holds": {
			&scheduler.Book{}, func(*world) {}, unavailable("n1 has not declared its holdings"),
		},
		"the ledger has refused": {
			&scheduler.Book{Declared: true}, func(w *world) { w.refuse["n1"] = "shm needs 4 MiB, has 1 MiB free of 12 MiB" },
			scheduler.Reason{
				Code: scheduler.Refusal, Place: at, Until: epoch.Add(time.Second),
				Text: "refused on n1: shm needs 4 MiB, has 1 MiB free of 12 MiB",
			},
		},
		"the ledger is away (B75)": {
			&scheduler.Book{Declared: true}, func(w *world) {
				w.apply(scheduler.Paused{On: true, Reason: "the ledger is away: LOADING Redis is loading the dataset in memory"})
			},
			scheduler.Reason{
				Code: scheduler.PausedCode, Text: "paused: the ledger is away: LOADING Redis is loading the dataset in memory",
			},
		},
		"its record could not be written": {
			&scheduler.Book{Declared: true}, func(w *world) { w.refuseJob["a"] = "claim: no answer" },
			scheduler.Reason{
				Code: scheduler.Backoff, Until: epoch.Add(time.Second),
				Text: "waits until 2026-01-02T03:04:06Z after a refusal: claim: no answer",
			},
		},
		"it is being reserved": {
			&scheduler.Book{Declared: true}, func(w *world) { w.hold = true },
			scheduler.Reason{Code: scheduler.Asked, Place: at, Text: "is being reserved on n1/gpu0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, scheduler.DefaultConfig())
			v := nodeView("n1", 9, 1, runs(), "gpu0")
			w.nodes["n1"] = &worldNode{
				view: v, holdings: map[job.Attempt]scheduler.Holding{}, assets: map[assetKey]ledger.Asset{},
				unsure: map[string]bool{},
			}
			v.Book = test.book
			test.prepare(w)
			w.apply(scheduler.NodeSeen{Node: v})
			w.addJob("a", "c", 1, 0)
			wantReason(t, test.want, whyOf(t, w.core))
		})
	}
}

// A partition that waits after an attempt says how that ended, and why (B51, B58).
func TestB51B58PausesSayHowTheLastAttemptEnded(t *testing.T) {
	t.Parallel()
	const full = "queue full: publish task: maximum bytes exceeded"
	for name, test := range map[string]struct {
		end  func(*job.Record, job.Attempt) error
		want string
	}{
		"B58: queue full": {
			func(r *job.Record, a job.Attempt) error { return r.HandBack(a, full, 2*time.Second, epoch) },
			"waits until 2026-01-02T03:04:07Z after its last attempt on n1/gpu0 was handed back: " + full,
		},
		"lost": {
			func(r *job.Record, a job.Attempt) error {
				return r.Lose(a, "signal: killed", job.DefaultPolicy(), epoch)
			},
			"waits until 2026-01-02T03:04:06Z after its last attempt on n1/gpu0 was lost: signal: killed",
		},
		"failed": {
			func(r *job.Record, a job.Attempt) error {
				report := &fault.Report{Kind: fault.Device, Message: "out of memory, needs 4 GiB, has 3 GiB"}
				return r.Fail(a, report, job.DefaultPolicy(), epoch)
			},
			"waits until 2026-01-02T03:04:06Z after its last attempt on n1/gpu0 failed: out of memory, needs 4 GiB, has 3 GiB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, scheduler.DefaultConfig())
			w.addNode(nodeView("n1", 9, 1, runs(), "gpu0"))
			w.addJob("a", "c", 1, 0)
			if err := test.end(w.records["a"], w.records["a"].Attempt(0)); err != nil {
				t.Fatal(err)
			}
			w.seen("a")
			if why := whyOf(t, w.core); why.Code != scheduler.Backoff || why.Text != test.want {
				t.Errorf("%s: %s", why.Code, why.Text)
			}
		})
	}
}
