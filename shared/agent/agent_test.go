package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// running is an agent that runs, and the beats it sends.
type running struct {
	*agent.Agent
	beats chan *wire.Beat
	stop  func()
}

// run starts an agent with short times. Its beats are dropped when nobody reads them.
func run(t *testing.T, n *node, book *agent.Book, change ...func(*agent.Config)) *running {
	t.Helper()
	r := &running{beats: make(chan *wire.Beat, 100)}
	config := agent.Config{
		Node: "node-1", Build: "test", Book: book, Spill: n.spill,
		Describe: func() wire.Beat { return wire.Beat{State: wire.StateReady, Slots: 2} },
		Publish: func(_ context.Context, b *wire.Beat) error {
			if err := b.Check(); err != nil {
				t.Errorf("beat: %v", err)
			}
			select {
			case r.beats <- b:
			default:
			}
			return nil
		},
		Heartbeat: 10 * time.Millisecond, SweepEvery: 10 * time.Millisecond, LockEvery: 5 * time.Millisecond,
	}
	for _, c := range change {
		c(&config)
	}
	var err error
	if r.Agent, err = agent.New(config); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

// next waits for a beat that fits.
func (r *running) next(t *testing.T, what string, fits func(*wire.Beat) bool) *wire.Beat {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case b := <-r.beats:
			if fits(b) {
				return b
			}
		case <-limit:
			t.Fatalf("no beat came with %s", what)
		}
	}
}

func withHost(b *wire.Beat) bool { return b.Host != nil }

func TestBeatTellsWhatTheHostHolds(t *testing.T) {
	t.Parallel()
	n, ctx := newNode(t), t.Context()
	a := attempt(1, 0, 1)
	n.mustAdmit(t, a, gib(2))
	n.seal(t, attempt(2, 0, 1))
	if err := n.spill.Reclaim(attempt(2, 0, 1)); err != nil {
		t.Fatal(err)
	}
	srs := ledger.Asset{Name: "srs:toy", Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: bytesize.GiB}
	if _, err := n.book.HoldAsset(ctx, srs); err != nil {
		t.Fatal(err)
	}
	r := run(t, n, n.book)
	first := r.next(t, "the host's report", withHost)
	self, err := handoff.Self()
	if err != nil {
		t.Fatal(err)
	}
	segment := n.spill.FileBytes(handoff.SHM, 10_000)
	want := &wire.Beat{
		Node: "node-1", Boot: self.Boot, Instance: "here", Role: wire.RoleGPU, Seq: 1, Build: "test",
		WireMin: wire.VersionMin, WireMax: wire.Version, State: wire.StateReady, Slots: 2,
		Host: &wire.HostReport{
			Capacity: capacity(), BookComplete: true, Assets: []ledger.Asset{srs},
			Book:         []wire.Booking{{Attempt: a, Amounts: gib(2), Stage: job.Reserved, Alive: true}},
			FreeSHMBytes: segment,
		},
		Flight: []flight.Report{{Process: "spill folder", LiveBytes: segment, Classes: []flight.ClassReport{{
			Class: ledger.ClassScratch, Live: []flight.StageCount{{Stage: flight.Allocated, Pieces: 1, Bytes: segment}},
			Pieces: 1, Bytes: segment, KeptPieces: 1, KeptBytes: segment,
		}}}},
	}
	if diff := cmp.Diff(want, first, cmpopts.IgnoreFields(wire.HostReport{}, "At")); diff != "" {
		t.Error(diff)
	}
	if time.Since(first.Host.At) > time.Minute || !r.Speaks() {
		t.Errorf("report of %v, speaks %v", first.Host.At, r.Speaks())
	}
	r.Poke()
	if second := r.next(t, "anything", withHost); second.Seq != 2 {
		t.Errorf("second beat has number %d", second.Seq)
	}
}

// TestDeadWorkersBytesAreReportedGone: bytes come back when the process and its segment are gone, and the host says so
// at its next beat (invariant 2, design section 6 "worker killed").
func TestDeadWorkersBytesAreReportedGone(t *testing.T) {
	t.Parallel()
	n, a := newNode(t), attempt(1, 0, 1)
	r := run(t, n, n.book)
	w := start(t, "write", n.path, "dying", 1)
	w.until(t, "ready")
	booked := func(b *wire.Beat) bool { return b.Host != nil && len(b.Host.Book) == 1 && b.Host.Book[0].Alive }
	r.next(t, "the booking", booked)
	w.kill(t)
	r.next(t, "an empty book", func(b *wire.Beat) bool { return b.Host != nil && len(b.Host.Book) == 0 })
	if _, _, err := n.spill.Lookup(a); !errors.Is(err, handoff.ErrAbsent) {
		t.Errorf("its segment: %v", err)
	}
}

func TestOneAgentSpeaksAndTheNextTakesOver(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	other := n.open(t, "other", "synth")
	first := run(t, n, n.book)
	first.next(t, "the host's report", withHost)
	second := run(t, n, other)
	for range 3 {
		if b := second.next(t, "anything", func(*wire.Beat) bool { return true }); b.Host != nil || b.Role != wire.RoleSynth {
			t.Errorf("two speak for the host: %+v", b)
		}
	}
	first.stop()
	second.next(t, "the host's report", withHost)
	if first.Speaks() || !second.Speaks() {
		t.Errorf("speaks: %v, %v", first.Speaks(), second.Speaks())
	}
}

// TestSweepAtStartAndOnTheTimer: invariant 9.
func TestSweepAtStartAndOnTheTimer(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	orphan, booked := attempt(1, 0, 1), attempt(1, 1, 1)
	n.seal(t, orphan)
	n.seal(t, booked)
	held := n.mustAdmit(t, booked, gib(1))
	r := run(t, n, n.book)
	r.next(t, "the host's report", withHost)
	gone := func(a job.Attempt) bool {
		_, _, err := n.spill.Lookup(a)
		return errors.Is(err, handoff.ErrAbsent)
	}
	if !gone(orphan) || gone(booked) {
		t.Errorf("at start: orphan gone %v, booked gone %v", gone(orphan), gone(booked))
	}
	if err := held.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	limit := time.Now().Add(time.Minute)
	for !gone(booked) {
		if time.Now().After(limit) {
			t.Fatal("no sweep came")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestUnwantedSealedSegmentGoes: its worker died, and the record says that another attempt is due by now.
func TestUnwantedSealedSegmentGoes(t *testing.T) {
	t.Parallel()
	n, a := newNode(t), attempt(1, 0, 1)
	w := start(t, "seal", n.path, "dying", 1)
	w.until(t, "ready")
	raised := make(chan struct{})
	r := run(t, n, n.book, func(c *agent.Config) {
		c.Current = func(_ context.Context, asked job.Attempt) (bool, error) {
			select {
			case <-raised:
				return asked != a, nil
			default:
				return true, nil
			}
		}
	})
	w.kill(t)
	r.next(t, "a booking that was handed over", func(b *wire.Beat) bool {
		return b.Host != nil && len(b.Host.Book) == 1 && b.Host.Book[0].Stage == job.Sealed && b.Host.Book[0].Alive
	})
	close(raised)
	r.next(t, "an empty book", func(b *wire.Beat) bool { return b.Host != nil && len(b.Host.Book) == 0 })
}

func TestBeatsGoOnWhenTheyCannotBeSentOrTheBookIsBroken(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	tries := make(chan *wire.Beat, 100)
	r := run(t, n, n.book, func(c *agent.Config) {
		c.Publish = func(_ context.Context, b *wire.Beat) error {
			select {
			case tries <- b:
			default:
			}
			return errors.New("no bus")
		}
	})
	r.beats = tries
	r.next(t, "a number", func(b *wire.Beat) bool { return b.Seq == 3 })
	if err := os.RemoveAll(filepath.Join(n.path, "book")); err != nil {
		t.Fatal(err)
	}
	r.next(t, "no report", func(b *wire.Beat) bool { return b.Host == nil })
}

func TestAgentChecksItsConfig(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	good := agent.Config{
		Node: "n", Book: n.book, Spill: n.spill, Describe: func() wire.Beat { return wire.Beat{} },
		Publish: func(context.Context, *wire.Beat) error { return nil },
	}
	if _, err := agent.New(good); err != nil {
		t.Errorf("defaults: %v", err)
	}
	for name, change := range map[string]func(*agent.Config){
		"node":      func(c *agent.Config) { c.Node = "Node 1" },
		"book":      func(c *agent.Config) { c.Book = nil },
		"heartbeat": func(c *agent.Config) { c.Heartbeat = -1 },
	} {
		bad := good
		change(&bad)
		if err := agent.Run(t.Context(), bad); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A booking that cannot be removed, since another process holds the book, is removed later: by its own worker's agent,
// although that worker lives and another one speaks for the host.
func TestAbandonedBookingIsRemovedLater(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	run(t, n, n.book).next(t, "the host's report", withHost)
	hasty, err := agent.OpenBook(agent.BookConfig{
		Path: n.path, Group: -1, Instance: "hasty", Role: "gpu", LockWait: time.Millisecond, Segments: n.spill,
		Capacity: func() (ledger.Amounts, error) { return capacity(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hasty.Close() })
	a := attempt(1, 0, 1)
	held, err := hasty.Admit(t.Context(), agent.Request{Attempt: a, Circuit: circuitID, Amounts: gib(1)})
	if err != nil {
		t.Fatal(err)
	}
	second := run(t, n, hasty)
	unlock := holdBookLock(t, n.path)
	if err := held.Remove(t.Context()); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("remove while the book is held: %v", err)
	}
	held.Abandon()
	second.next(t, "a beat while the book is held", func(*wire.Beat) bool { return true })
	if !hasty.Booked(a) {
		t.Error("the booking is gone while the book is held")
	}
	unlock()
	for deadline := time.Now().Add(time.Minute); hasty.Booked(a); {
		if time.Now().After(deadline) {
			t.Fatal("the booking stays")
		}
		second.next(t, "a beat", func(*wire.Beat) bool { return true })
	}
	if _, err := hasty.Admit(t.Context(), agent.Request{Attempt: a, Circuit: circuitID, Amounts: gib(1)}); err != nil {
		t.Errorf("book it again: %v", err)
	}
	for range 5 { // the second booking was not abandoned
		second.next(t, "a beat", func(*wire.Beat) bool { return true })
	}
	if !hasty.Booked(a) {
		t.Error("the next booking of the attempt was removed, too")
	}
}
