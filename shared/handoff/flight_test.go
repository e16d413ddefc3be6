package handoff_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/ledger"
)

// stages are how many segments a recorder has at each stage, and how many are gone.
func stages(r *flight.Recorder) map[flight.Stage]int64 {
	report := r.Report()
	c := report.Class(ledger.ClassAssignment)
	out := map[flight.Stage]int64{}
	for _, n := range c.Live {
		out[n.Stage] = n.Pieces
	}
	if c.GonePieces > 0 {
		out[flight.Gone] = c.GonePieces
	}
	if report.Defects > 0 {
		panic(report.Defect)
	}
	return out
}

func newRecorder(t *testing.T, process string) *flight.Recorder {
	t.Helper()
	r, err := flight.New(flight.Config{Process: process, Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every mapping of a segment is counted from its beginning to its end, in the process that has it.
func TestSegmentsAreCountedAtEachStage(t *testing.T) {
	t.Parallel()
	path, a := memoryFolder(t), attempt(1, 2, 3)
	open := func(r *flight.Recorder) *handoff.Spill {
		config := handoff.NewConfig(path)
		config.Flight = r
		s, err := handoff.New(config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	synth, gpu, engine := newRecorder(t, "synth"), newRecorder(t, "gpu"), newRecorder(t, "engine")
	writing, reading := open(synth), open(gpu)
	step := func(what string, r *flight.Recorder, want map[flight.Stage]int64) {
		t.Helper()
		if diff := cmp.Diff(want, stages(r)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	d, err := writing.Create(t.Context(), handoff.Spec{Attempt: a, Circuit: circuitID, Bytes: 1 << 20})
	check(err)
	step("created", synth, map[flight.Stage]int64{flight.Allocated: 1})
	check(d.Seal(t.Context()))
	check(d.Seal(t.Context()))
	step("sealed", synth, map[flight.Stage]int64{flight.Sealed: 1})
	check(d.HandOver())
	check(d.HandOver())
	check(d.Close())
	step("handed over", synth, map[flight.Stage]int64{flight.Gone: 1})
	files, err := writing.Flight()
	check(err)
	if c := files.Class(ledger.ClassAssignment); c.Pieces != 1 || c.Bytes < 1<<20 || len(c.Oldest) != 1 ||
		c.Oldest[0].Label != a.String() || files.Idle() || files.Check() != nil {
		t.Errorf("files between the processes: %+v", files)
	}

	seg, err := reading.Open(t.Context(), handoff.Want{Attempt: a, Circuit: circuitID})
	check(err)
	step("mapped", gpu, map[flight.Stage]int64{flight.Mapped: 1})
	file, err := os.Open(seg.File().Name())
	check(err)
	passed, err := handoff.FromFile(file, handoff.Want{Attempt: a, Circuit: circuitID, Flight: engine})
	check(err)
	step("passed", engine, map[flight.Stage]int64{flight.Mapped: 1})
	passed.OnDevice()
	step("on the device", engine, map[flight.Stage]int64{flight.OnDevice: 1})
	check(passed.Close())
	check(passed.Close())
	step("closed", engine, map[flight.Stage]int64{flight.Gone: 1})
	check(seg.GiveBack())
	check(seg.GiveBack())
	step("given back", gpu, map[flight.Stage]int64{flight.Gone: 1})
	files, err = writing.Flight()
	check(err)
	if c := files.Class(ledger.ClassScratch); c.Pieces != 1 || !files.Idle() || files.LiveBytes < 1<<20 {
		t.Errorf("files at the end: %+v", files)
	}
}

// What fails or is given up is not counted any more.
func TestSegmentsThatFailAreNotCounted(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, "p")
	config := handoff.NewConfig(memoryFolder(t))
	config.Flight, config.SealWait = r, time.Millisecond
	s, err := handoff.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	d, err := s.Create(t.Context(), handoff.Spec{Attempt: attempt(1, 1, 1), Circuit: circuitID, Bytes: 4096})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), handoff.Want{Attempt: attempt(1, 1, 1), Circuit: circuitID}); err == nil {
		t.Fatal("a segment without a seal was opened")
	}
	if err := d.GiveBack(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[flight.Stage]int64{flight.Gone: 1}, stages(r)); diff != "" {
		t.Error(diff)
	}
}
