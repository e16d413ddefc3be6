//go:build toy

package engine_test

import (
	"os"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
)

// flown waits until an engine's report is as wanted.
func flown(t *testing.T, e *engine.Engine, what string, holds func(*flight.Report) bool) *flight.Report {
	t.Helper()
	var last *flight.Report
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if last = e.Progress().Flight; last != nil && holds(last) {
			return last
		}
	}
	t.Fatalf("%s: %+v", what, last)
	return nil
}

func at(r *flight.Report, class ledger.Class, stage flight.Stage) int64 {
	c := r.Class(class)
	for _, n := range c.Live {
		if n.Stage == stage {
			return n.Pieces
		}
	}
	return 0
}

// An engine tells its worker which buffers it has; after a proof, assets are left, after its end nothing.
func TestEngineReportsItsBuffers(t *testing.T) {
	t.Parallel()
	line := flight.NewTimeline(1000)
	c := config(params(t), nil)
	c.Timeline = line
	e := spawn(t, c)
	file, work := sealed(t, 1)
	p, err := e.Prepare(t.Context(), work, file)
	if err != nil {
		t.Fatal(err)
	}
	r := flown(t, e, "a segment is mapped", func(r *flight.Report) bool {
		return at(r, ledger.ClassAssignment, flight.Mapped) == 1 && r.Waiting == 1
	})
	if c := r.Class(ledger.ClassAssignment); r.RSSBytes == 0 || r.Process != "engine cpu" || r.Idle() ||
		c.Oldest[0].Label != work.Attempt.String() {
		t.Errorf("prepared: %+v", r)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	flown(t, e, "the device has it", func(r *flight.Report) bool {
		return at(r, ledger.ClassAssignment, flight.OnDevice) == 1 && r.Pending == 1 && r.Waiting == 0
	})
	if _, err := p.Finish(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	r = flown(t, e, "only assets are left", (*flight.Report).Idle)
	if c := r.Class(ledger.ClassEvals); c.KeptPieces != 2 || c.KeptBytes == 0 || r.Defects != 0 ||
		r.Class(ledger.ClassAssignment).GonePieces != 1 || r.Class(ledger.ClassSRS).KeptPieces != 1 {
		t.Errorf("idle: %+v", r)
	}
	if err := e.Evict(t.Context(), "toy"); err != nil {
		t.Fatal(err)
	}
	flown(t, e, "all of the circuit is gone", func(r *flight.Report) bool {
		return r.LiveBytes == 0 && r.Class(ledger.ClassEvals).GonePieces == 2 && r.Class(ledger.ClassSRS).GonePieces == 1 &&
			r.Class(ledger.ClassArtifact).GonePieces == 1
	})
	e.Close()
	left := map[ledger.Class]int64{}
	for _, p := range line.Points("engine cpu") {
		left[p.Class] = p.Pieces
	}
	if len(left) < 2 || left[ledger.ClassEvals] != 0 || left[ledger.ClassAssignment] != 0 {
		t.Errorf("the time line ends with %v", left)
	}
}

// What the device works with is counted while a proof is in it, as that of its attempt, and once however many proofs
// are: they take turns.
func TestEngineReportsWhatTheDeviceWorksWith(t *testing.T) {
	t.Parallel()
	hooks := t.TempDir()
	c := config(params(t), nil)
	c.Setup.HookFolder, c.Setup.Hooks = hooks, []string{"pause@gpu.mid-proof#1"}
	e := spawn(t, c)
	loaded, err := e.Load(t.Context(), "toy", nil)
	if err != nil {
		t.Fatal(err)
	}
	var works [2]engine.Work
	ended := make(chan error, len(works))
	for i := range works {
		var file *os.File
		file, works[i] = sealed(t, uint64(i+1))
		go func() {
			_, err := prove(t.Context(), e, file, works[i])
			ended <- err
		}()
		if i == 0 {
			flown(t, e, "the first is in the device", func(*flight.Report) bool {
				_, ok := hook.ReachedBy(hooks, "gpu.mid-proof#1")
				return ok
			})
		}
	}
	r := flown(t, e, "both are prepared", func(r *flight.Report) bool {
		return at(r, ledger.ClassAssignment, flight.Mapped) == 2
	})
	s := r.Class(ledger.ClassScratch)
	if len(s.Oldest) != 1 || s.Oldest[0].Bytes != loaded.Working || s.Oldest[0].Label != works[0].Attempt.String() ||
		loaded.Working == 0 {
		t.Errorf("in the middle of a proof: %+v, want %s of attempt %s", s, loaded.Working, works[0].Attempt)
	}
	if err := hook.LetGo(hooks, "gpu.mid-proof#1"); err != nil {
		t.Fatal(err)
	}
	for range works {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	r = flown(t, e, "only assets are left", (*flight.Report).Idle)
	if s := r.Class(ledger.ClassScratch); s.GonePieces < 2 || s.HighPieces != 1 || r.Defects != 0 {
		t.Errorf("after two proofs: %+v", s)
	}
}

// A prepared proof that is dropped leaves nothing.
func TestDroppedProofLeavesNoBuffer(t *testing.T) {
	t.Parallel()
	e := spawn(t, config(params(t), nil))
	file, work := sealed(t, 1)
	p, err := e.Prepare(t.Context(), work, file)
	if err != nil {
		t.Fatal(err)
	}
	p.Drop()
	flown(t, e, "the segment is gone", func(r *flight.Report) bool {
		return r.Class(ledger.ClassAssignment).GonePieces == 1 && r.Idle()
	})
}
