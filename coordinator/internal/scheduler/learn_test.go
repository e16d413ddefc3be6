package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// peaks has attempts end one after the other, with a measured peak of ram each, and gives what was told of drift.
func peaks(w *world, name string, ram ...float64) (told []*scheduler.Drifted) {
	var running []job.Attempt
	w.onAdmit = func(d *scheduler.Admit) { running = append(running, d.Attempt) }
	for i, peak := range ram {
		w.addJob(job.ID(fmt.Sprint(name, i)), "c", 1, 0)
		a := running[len(running)-1]
		w.finish(scheduler.Ended{
			Attempt: a, Outcome: job.OutcomeOK, Device: time.Second, Peaks: ledger.Amounts{ledger.PoolRAM: gib(peak)},
		}, job.DefaultPolicy())
		w.free(a, "n1")
	}
	for _, d := range w.log {
		if d, ok := d.(*scheduler.Drifted); ok {
			told = append(told, d)
		}
	}
	w.log = nil
	return told
}

// A size that workers say 30 % too low is booked by the measured peak and a margin from the fifth attempt on, and told
// once; and again when it fits.
func TestSizeSaid30PercentTooLowIsCorrectedAndTold(t *testing.T) {
	t.Parallel()
	cfg := scheduler.DefaultConfig()
	w := newWorld(t, cfg)
	const really, said = 10, 7
	node := nodeView("n1", 100, 8, map[string]scheduler.CircuitView{"c": ready(kind(said, 1, 0, "c"))}, "gpu0")
	node.Devices[0].Kind = "H200"
	w.addNode(node)
	if told := peaks(w, "a", really, really, really, really); len(told) > 0 {
		t.Errorf("told after four: %v", told)
	}
	told := peaks(w, "b", really, really)
	want := scheduler.Learned{
		LearnedKey: scheduler.LearnedKey{Circuit: "c", Kind: "H200", Pool: ledger.PoolRAM},
		Said:       gib(said), Peak: gib(really), Samples: 5, Booked: gib(really * (1 + cfg.PeakMargin)),
	}
	if len(told) != 1 || !told[0].Over || told[0].Under {
		t.Fatalf("told: %v", told)
	}
	if diff := cmp.Diff(want, told[0].Learned); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	booked := ledger.Amounts{}
	w.onAdmit = func(d *scheduler.Admit) { booked = d.Needs.Amounts }
	w.addJob("next", "c", 1, 0)
	if diff := cmp.Diff(ledger.Amounts{ledger.PoolRAM: want.Booked, ledger.PoolSHM: gib(1)}, booked); diff != "" {
		t.Errorf("the next one is booked with (-want +got):\n%s", diff)
	}
	if got := w.core.Held("n1"); got[ledger.PoolRAM] != want.Booked {
		t.Errorf("held: %s", got)
	}
	// A device of another kind goes by what is said.
	other := nodeView("n2", 100, 8, map[string]scheduler.CircuitView{"c": ready(kind(said, 1, 0, "c"))}, "gpu0")
	other.Devices[0].Kind = "L4"
	w.nodes["n1"].view.Cordoned = true
	w.seeNode("n1")
	w.addNode(other)
	w.addJob("elsewhere", "c", 1, 0)
	if booked[ledger.PoolRAM] != gib(said) {
		t.Errorf("on another kind %s are booked", booked)
	}
	// Workers that say the right size begin anew.
	w.nodes["n1"].view.Cordoned, w.nodes["n2"].view.Cordoned = false, true
	w.seeNode("n2")
	w.nodes["n1"].view.Devices[0].Circuits = map[string]scheduler.CircuitView{"c": ready(kind(really, 1, 0, "c"))}
	w.seeNode("n1")
	if told := peaks(w, "c", really, really, really, really, really, really); len(told) > 0 {
		t.Errorf("told of a size that is right: %v", told)
	}
	if got := w.core.Learned(); len(got) != 1 || got[0].Said != gib(really) || got[0].Booked != gib(really) {
		t.Errorf("learned: %+v", got)
	}
}

// A segment that is larger than said takes as much more ram, and a little more is none.
func TestSizeOfSegmentsCountsAsRAM(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scheduler.DefaultConfig())
	w.addNode(nodeView("n1", 100, 8, map[string]scheduler.CircuitView{"c": ready(kind(10, 4, 0, "c"))}, "gpu0"))
	for _, test := range []struct{ peak, shm, ram float64 }{{4.05, 4, 10}, {5, 5.5, 11.5}} {
		var last *scheduler.Admit
		w.onAdmit = func(d *scheduler.Admit) { last = d }
		for i := range 7 {
			w.addJob(job.ID(fmt.Sprint(test.peak, i)), "c", 1, 0)
			a := last.Attempt
			w.finish(scheduler.Ended{
				Attempt: a, Outcome: job.OutcomeOK, Device: time.Second, Peaks: ledger.Amounts{ledger.PoolSHM: gib(test.peak)},
			}, job.DefaultPolicy())
			w.free(a, "n1")
		}
		want := ledger.Amounts{ledger.PoolRAM: gib(test.ram), ledger.PoolSHM: gib(test.shm)}
		if diff := cmp.Diff(want, last.Needs.Amounts); diff != "" {
			t.Errorf("booked (-want +got):\n%s", diff)
		}
	}
}

// What is said too high stays booked, and is told; one peak that stands out counts until it is forgotten.
func TestSizeSaidTooHighIsToldAndStaysBooked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scheduler.DefaultConfig())
	w.addNode(nodeView("n1", 100, 8, map[string]scheduler.CircuitView{"c": ready(kind(10, 0, 0, "c"))}, "gpu0"))
	told := peaks(w, "a", 3, 3, 3, 3, 3, 3)
	if len(told) != 1 || !told[0].Under || told[0].Booked != gib(10) {
		t.Fatalf("told: %v", told)
	}
	if told = peaks(w, "b", 14); len(told) != 1 || !told[0].Over || told[0].Booked != gib(14*1.1) {
		t.Errorf("told of one that stands out: %v", told)
	}
	many := make([]float64, 200)
	for i := range many {
		many[i] = 9.5
	}
	if told = peaks(w, "c", many...); len(told) != 1 || told[0].Over || told[0].Under {
		t.Errorf("told when it is forgotten: %v", told)
	}
}
