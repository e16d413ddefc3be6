package residency_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/proof/groth16/groth16test"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
	"github.com/proofrack/proofrack/worker-gpu/internal/residency"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a set with one circuit whose loads are counted and may be held.
type bench struct {
	*residency.Set

	circuit circuit.Circuit
	folder  string
	loads   atomic.Int32
	gate    chan struct{}
	flight  *flight.Recorder
}

func newBench(t *testing.T, generated bool) *bench {
	t.Helper()
	b := &bench{circuit: groth16test.Random(1, 40), folder: t.TempDir(), gate: make(chan struct{})}
	close(b.gate)
	if generated {
		b.generate(t)
	}
	var err error
	b.flight, err = flight.New(flight.Config{Process: "test", CollectAfter: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	find := func(id string) (circuit.Circuit, error) {
		b.loads.Add(1)
		<-b.gate
		if id != b.circuit.ID() {
			return nil, errors.New("no such circuit")
		}
		return b.circuit, nil
	}
	b.Set = residency.New(residency.Config{Params: b.folder, Flight: b.flight, Find: find})
	return b
}

func (b *bench) generate(t *testing.T) {
	t.Helper()
	_, err := generate.ToFolder(t.Context(), b.folder, b.circuit, groth16test.ExactScalars(), generate.Options{})
	if err != nil {
		t.Fatal(err)
	}
}

func none() error { return nil }

func TestManyAskOneLoads(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	b.gate = make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			r, release, err := b.Acquire(t.Context(), b.circuit.ID())
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if r.SRSBytes() <= 0 || r.ArtifactBytes() <= 0 || r.Circuit.ID() != b.circuit.ID() {
				t.Errorf("resident %+v", r)
			}
		})
	}
	for b.loads.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if _, err := b.Evict(b.circuit.ID(), none); fault.KindOf(err) != fault.Conflict {
		t.Errorf("evict while it is loaded: %v", err)
	}
	close(b.gate)
	wg.Wait()
	if n := b.loads.Load(); n != 1 {
		t.Errorf("loaded %d times", n)
	}
}

func TestEvictLeavesAloneWhatIsUsed(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	id := b.circuit.ID()
	if was, err := b.Evict(id, none); was || err != nil {
		t.Errorf("evict of what is not there: %v, %v", was, err)
	}
	_, release, err := b.Acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Evict(id, none); fault.KindOf(err) != fault.Conflict {
		t.Errorf("evict in use: %v", err)
	}
	if _, idle := b.Idle(id); idle {
		t.Error("idle while it is used")
	}
	release()
	release() // again does nothing
	if at, idle := b.Idle(id); !idle || time.Since(at) > time.Minute {
		t.Errorf("idle since %s: %v", at, idle)
	}
	refused := errors.New("the device does not let go")
	if _, err := b.Evict(id, func() error { return refused }); !errors.Is(err, refused) {
		t.Errorf("evict: %v", err)
	}
	if was, err := b.Evict(id, none); !was || err != nil {
		t.Errorf("evict: %v, %v", was, err)
	}
	if _, release, err = b.Acquire(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	release()
	if n := b.loads.Load(); n != 2 {
		t.Errorf("loaded %d times", n)
	}
	if _, err := b.Evict(id, none); err != nil {
		t.Error(err)
	}
}

func TestFailedLoadsAreTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, false)
	id := b.circuit.ID()
	_, _, err := b.Acquire(t.Context(), id)
	if !errors.Is(err, residency.ErrMissing) || fault.KindOf(err) != fault.NotFound {
		t.Errorf("missing: %v", err)
	}
	if _, _, err := b.Acquire(t.Context(), "other"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("unknown circuit: %v", err)
	}
	if err := os.WriteFile(residency.ParamsPath(b.folder, b.circuit), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Acquire(t.Context(), id); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("corrupt: %v", err)
	}
	if err := os.Remove(residency.ParamsPath(b.folder, b.circuit)); err != nil {
		t.Fatal(err)
	}
	b.generate(t)
	_, release, err := b.Acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if _, err := b.Evict(id, none); err != nil {
		t.Error(err)
	}
}

func TestWaitForALoadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	b.gate = make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, _, err := b.Acquire(ctx, b.circuit.ID()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(b.gate)
	_, release, err := b.Acquire(t.Context(), b.circuit.ID()) // the load went on
	if err != nil {
		t.Fatal(err)
	}
	release()
	if n := b.loads.Load(); n != 1 {
		t.Errorf("loaded %d times", n)
	}
	if _, err := b.Evict(b.circuit.ID(), none); err != nil {
		t.Error(err)
	}
}
