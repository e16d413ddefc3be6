package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/sizes"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// measured is a circuit whose synthesis is computed to take all that its attempts have of ram and shm.
func measured(needs scheduler.Needs) scheduler.CircuitView {
	v := ready(needs)
	for _, pool := range slices.Sorted(maps.Keys(needs.Amounts)) {
		v.Computed = append(v.Computed, scheduler.Computed{Stage: job.Synthesizing, Pool: pool, Bytes: needs.Amounts[pool]})
	}
	return v
}

// peaks has attempts end one after the other, with a measured peak of ram each, and gives what was told of drift.
func peaks(w *world, name string, ram ...float64) (told []*scheduler.Drifted) {
	var running []job.Attempt
	w.onAdmit = func(d *scheduler.Admit) { running = append(running, d.Attempt) }
	for i, peak := range ram {
		w.addJob(job.ID(fmt.Sprint(name, i)), "c", 1, 0)
		a := running[len(running)-1]
		w.finish(scheduler.Ended{
			Attempt: a, Outcome: job.OutcomeOK, Device: time.Second,
			Peaks: scheduler.Peaks{job.Synthesizing: {ledger.PoolRAM: gib(peak)}},
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
	node := nodeView("n1", 100, 8, map[string]scheduler.CircuitView{"c": measured(kind(said, 1, 0, "c"))}, "gpu0")
	node.Devices[0].Kind = "H200"
	w.addNode(node)
	if told := peaks(w, "a", really, really, really, really); len(told) > 0 {
		t.Errorf("told after four: %v", told)
	}
	told := peaks(w, "b", really, really)
	want := sizes.Size{
		Key:      sizes.Key{Circuit: "c", Stage: job.Synthesizing, Kind: "H200", Pool: ledger.PoolRAM},
		Computed: gib(said), P50: gib(really), P99: gib(really), Samples: 5, Booked: gib(really * (1 + cfg.PeakMargin)),
		Over: true, MeasuredAt: told[0].MeasuredAt,
	}
	if len(told) != 1 || !told[0].Over || told[0].Under {
		t.Fatalf("told: %v", told)
	}
	if diff := cmp.Diff(want, told[0].Size); diff != "" {
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
	other := nodeView("n2", 100, 8, map[string]scheduler.CircuitView{"c": measured(kind(said, 1, 0, "c"))}, "gpu0")
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
	w.nodes["n1"].view.Devices[0].Circuits = map[string]scheduler.CircuitView{"c": measured(kind(really, 1, 0, "c"))}
	w.seeNode("n1")
	if told := peaks(w, "c", really, really, really, really, really, really); len(told) > 0 {
		t.Errorf("told of a size that is right: %v", told)
	}
	if got := w.core.Sizes().Sizes(); len(got) != 1 || got[0].Computed != gib(really) || got[0].Booked != gib(really) {
		t.Errorf("learned: %+v", got)
	}
}

// A segment that is larger than said takes as much more ram, and a little more is none.
func TestSizeOfSegmentsCountsAsRAM(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scheduler.DefaultConfig())
	w.addNode(nodeView("n1", 100, 8, map[string]scheduler.CircuitView{"c": measured(kind(10, 4, 0, "c"))}, "gpu0"))
	for _, test := range []struct{ peak, shm, ram float64 }{{4.05, 4, 10}, {5, 5.5, 11.5}} {
		var last *scheduler.Admit
		w.onAdmit = func(d *scheduler.Admit) { last = d }
		for i := range 7 {
			w.addJob(job.ID(fmt.Sprint(test.peak, i)), "c", 1, 0)
			a := last.Attempt
			w.finish(scheduler.Ended{
				Attempt: a, Outcome: job.OutcomeOK, Device: time.Second,
				Peaks: scheduler.Peaks{job.Synthesizing: {ledger.PoolSHM: gib(test.peak)}},
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
	w.addNode(nodeView("n1", 100, 8, map[string]scheduler.CircuitView{"c": measured(kind(10, 0, 0, "c"))}, "gpu0"))
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

// A later reign books by what an earlier one learned, pins included, and knows which devices are fast.
func TestNextReignGoesOnWithWhatWasLearned(t *testing.T) {
	t.Parallel()
	cfg := scheduler.DefaultConfig()
	view := func() scheduler.NodeView {
		v := nodeView("n1", 100, 8, map[string]scheduler.CircuitView{"c": measured(kind(7, 0, 0, "c"))}, "fast", "slow")
		for i := range v.Devices {
			v.Devices[i].Kind = string(v.Devices[i].Device)
		}
		return v
	}
	before := newWorld(t, cfg)
	before.addNode(view())
	took := map[job.Device]time.Duration{"fast": 10 * time.Second, "slow": 100 * time.Second}
	var last *scheduler.Admit
	before.onAdmit = func(d *scheduler.Admit) { last = d }
	for i := 0; i < 40; i++ {
		before.addJob(job.ID(fmt.Sprint("a", i)), "c", 1, 0)
		a, on := last.Attempt, last.Place.Device
		before.finish(scheduler.Ended{
			Attempt: a, Outcome: job.OutcomeOK, Device: took[on], Synth: time.Second,
			Peaks: scheduler.Peaks{job.Synthesizing: {ledger.PoolRAM: gib(10)}},
		}, job.DefaultPolicy())
		before.free(a, "n1")
	}
	if told, now := before.core.Drifts(); told == 0 || now == 0 {
		t.Fatalf("drift was told %d times, %d sizes drift", told, now)
	}
	rows, speeds, err := before.core.Sizes().Encode()
	if err != nil {
		t.Fatal(err)
	}
	learned, err := sizes.Decode(sizes.DefaultConfig(), rows, speeds)
	if err != nil {
		t.Fatal(err)
	}
	for _, nodeFirst := range []bool{false, true} {
		w := newWorld(t, cfg)
		if nodeFirst {
			w.addNode(view())
			w.apply(scheduler.Remembered{Sizes: learned})
		} else {
			w.apply(scheduler.Remembered{Sizes: learned})
			w.addNode(view())
		}
		booked := map[job.Device]ledger.Amounts{}
		w.onAdmit = func(d *scheduler.Admit) { booked[d.Place.Device] = d.Needs.Amounts }
		w.addJob("first", "c", 1, 0)
		if len(booked) != 1 || booked["fast"][ledger.PoolRAM] != gib(11) {
			t.Errorf("node first: %v: booked %v", nodeFirst, booked)
		}
		// The fast device has 10 s of work and would be done with another one long before the slow one, which is free.
		w.addJob("second", "c", 1, 0)
		if booked["slow"] != nil {
			t.Errorf("node first: %v: the last partition of a job went to the slow device", nodeFirst)
		}
	}
}

// An operator's pin is what is booked from then on, device memory in the pool of the device itself, until it is taken
// away.
func TestPinnedSizeIsBooked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scheduler.DefaultConfig())
	view := nodeView("n1", 100, 8, map[string]scheduler.CircuitView{"c": {
		Ready:   true,
		Choices: []scheduler.Needs{{Amounts: ledger.Amounts{ledger.PoolRAM: gib(5), ledger.PoolSHM: gib(2)}}},
		Computed: []scheduler.Computed{
			{Stage: job.Synthesizing, Pool: ledger.PoolRAM, Bytes: gib(1)},
			{Stage: job.Synthesizing, Pool: ledger.PoolSHM, Bytes: gib(2)},
			{Stage: job.Synthesizing, Pool: ledger.PoolDisk, Bytes: gib(2)},
			{Stage: job.Proving, Pool: ledger.PoolRAM, Bytes: gib(30)}, // most of it is no attempt's own
			{Stage: job.Proving, Pool: sizes.VRAM, Bytes: gib(8)},
		},
	}}, "gpu0")
	view.Capacity[ledger.PoolVRAM("gpu0")] = gib(16)
	w.addNode(view)
	var last *scheduler.Admit
	w.onAdmit = func(d *scheduler.Admit) { last = d }
	pin := func(stage job.Stage, pool ledger.Pool, bytes float64) {
		w.apply(scheduler.SizePinned{Key: sizes.Key{Circuit: "c", Stage: stage, Pool: pool}, Bytes: gib(bytes)})
	}
	for i, step := range []struct {
		do   func()
		want ledger.Amounts
	}{
		{func() {}, ledger.Amounts{ledger.PoolRAM: gib(5), ledger.PoolSHM: gib(2)}},
		{func() { pin(job.Proving, ledger.PoolRAM, 33) }, ledger.Amounts{ledger.PoolRAM: gib(8), ledger.PoolSHM: gib(2)}},
		{func() { pin(job.Synthesizing, ledger.PoolRAM, 0.5) },
			ledger.Amounts{ledger.PoolRAM: gib(7.5), ledger.PoolSHM: gib(2)}},
		{func() { pin(job.Synthesizing, ledger.PoolSHM, 3) },
			ledger.Amounts{ledger.PoolRAM: gib(8.5), ledger.PoolSHM: gib(3)}},
		{func() { pin(job.Proving, sizes.VRAM, 9) },
			ledger.Amounts{ledger.PoolRAM: gib(8.5), ledger.PoolSHM: gib(3), ledger.PoolVRAM("gpu0"): gib(1)}},
		{func() { pin(job.Proving, ledger.PoolRAM, 1) }, // every byte of shm is one of ram
			ledger.Amounts{ledger.PoolRAM: gib(3), ledger.PoolSHM: gib(3), ledger.PoolVRAM("gpu0"): gib(1)}},
		{func() {
			pin(job.Proving, ledger.PoolRAM, 0)
			pin(job.Synthesizing, ledger.PoolRAM, 0)
			pin(job.Synthesizing, ledger.PoolSHM, 0)
			pin(job.Proving, sizes.VRAM, 0)
		}, ledger.Amounts{ledger.PoolRAM: gib(5), ledger.PoolSHM: gib(2)}},
	} {
		step.do()
		last = nil
		w.addJob(job.ID(fmt.Sprint("j", i)), "c", 1, 0)
		if last == nil {
			t.Fatalf("step %d: not admitted", i)
		}
		if diff := cmp.Diff(step.want, last.Needs.Amounts); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
		w.finish(scheduler.Ended{Attempt: last.Attempt, Outcome: job.OutcomeOK, Device: time.Second}, job.DefaultPolicy())
		w.free(last.Attempt, "n1")
	}
}
