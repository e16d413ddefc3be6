package synth

import (
	"sync"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// probe is a witness that notes where it is walked and walks until it is let go.
type probe struct {
	goOn chan struct{}

	mu   sync.Mutex
	cpus [][]int
}

func (p *probe) Synthesize(int, r1cs.Values) {
	p.mu.Lock()
	p.cpus = append(p.cpus, allowed())
	p.mu.Unlock()
	for done := false; !done; { // busy, as a walk is
		select {
		case <-p.goOn:
			done = true
		default:
		}
	}
}

func (p *probe) PublicInputs() []fr.Element { return nil }

func allowed() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		panic(err)
	}
	var cpus []int
	for cpu := range 1024 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// Each of two faked sockets has one of this machine's processors: a section is walked on the right one, and the
// thread is given back as it was.
func TestSectionsAreWalkedNextToTheirDevice(t *testing.T) {
	t.Parallel()
	before := allowed()
	for _, cpu := range before[:min(2, len(before))] {
		p := &probe{goOn: make(chan struct{})}
		close(p.goOn)
		first := 0
		w := newWatched(p, []int{cpu}, func() { first++ })
		w.Synthesize(0, nil)
		w.Synthesize(1, nil)
		if diff := cmp.Diff([][]int{{cpu}, {cpu}}, p.cpus); diff != "" {
			t.Error(diff)
		}
		if first != 1 {
			t.Errorf("the first section was told %d times", first)
		}
	}
	if diff := cmp.Diff(before, allowed()); diff != "" {
		t.Error(diff)
	}
	p := &probe{goOn: make(chan struct{})}
	close(p.goOn)
	newWatched(p, nil, func() {}).Synthesize(0, nil)
	if diff := cmp.Diff([][]int{before}, p.cpus); diff != "" {
		t.Errorf("without a device's processors: %s", diff)
	}
	newWatched(p, []int{1000}, func() {}).Synthesize(0, nil) // a processor that is not there: walked all the same
}

// B35: a long section shows progress while it uses the processor, and its sum never falls.
func TestProgressWithinASection(t *testing.T) {
	t.Parallel()
	p := &probe{goOn: make(chan struct{})}
	w := newWatched(p, nil, func() {})
	if w.progress() != 0 {
		t.Error("progress before the start")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Synthesize(0, nil)
	}()
	deadline := time.Now().Add(time.Minute)
	last := uint64(0)
	for last < 5 {
		now := w.progress()
		if now < last {
			t.Fatalf("progress fell from %d to %d", last, now)
		}
		last = now
		if time.Now().After(deadline) {
			t.Fatalf("progress stays at %d", last)
		}
		time.Sleep(time.Millisecond)
	}
	close(p.goOn)
	<-ended
	end := w.progress()
	if end < last {
		t.Errorf("progress fell from %d to %d at the end", last, end)
	}
	if w.progress() != end {
		t.Error("progress without work")
	}
}
