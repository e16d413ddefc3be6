package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// TestVetoTellsThePoolAndTheNumbers: invariant 1 on the node, and invariant 8.
func TestVetoTellsThePoolAndTheNumbers(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.mustAdmit(t, attempt(1, 0, 1), gib(30))
	_, err := n.book.Admit(t.Context(), agent.Request{Attempt: attempt(1, 1, 1), Amounts: gib(11)})
	var veto *agent.Veto
	if !errors.As(err, &veto) || fault.KindOf(err) != fault.Exhausted {
		t.Fatalf("41 of 40 GiB: %v", err)
	}
	want := &agent.Veto{
		Pool: ledger.PoolRAM, NeedBytes: 11 * bytesize.GiB, FreeBytes: 10 * bytesize.GiB, CapacityBytes: 40 * bytesize.GiB,
		Holders: []string{attempt(1, 0, 1).String() + " 30 GiB"},
	}
	if diff := cmp.Diff(want, veto); diff != "" {
		t.Error(diff)
	}
	if text := err.Error(); !strings.Contains(text, "ram needs 11 GiB, has 10 GiB free of 40 GiB") {
		t.Errorf("text %q", text)
	}
	if n.book.Booked(attempt(1, 1, 1)) {
		t.Error("a veto leaves a booking")
	}
	n.mustAdmit(t, attempt(1, 2, 1), gib(10))
	if _, err := n.book.Admit(t.Context(), agent.Request{Attempt: attempt(1, 3, 1), Amounts: ledger.Amounts{
		ledger.PoolVRAM("gpu7"): 1,
	}}); !errors.As(err, &veto) || veto.CapacityBytes != 0 {
		t.Errorf("a device that is not here: %v", err)
	}
	n.capacity = gib(20) // capacity falls below what is held: nothing is granted, not even little
	if _, err := n.book.Admit(t.Context(), agent.Request{Attempt: attempt(1, 4, 1), Amounts: gib(1)}); !errors.As(err,
		&veto) || veto.FreeBytes != 0 {
		t.Errorf("below what is held: %v", err)
	}
}

func TestBookingGoesFromSynthesisToProof(t *testing.T) {
	t.Parallel()
	n, a, ctx := newNode(t), attempt(1, 0, 1), t.Context()
	synth := n.open(t, "synth", "synth")
	amounts := ledger.Amounts{ledger.PoolRAM: 3 * bytesize.GiB, ledger.PoolSHM: bytesize.MiB}
	held, err := synth.Admit(ctx, agent.Request{Attempt: a, Circuit: circuitID, Device: "gpu0", Amounts: amounts})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := synth.Admit(ctx, agent.Request{Attempt: a, Amounts: gib(1)}); !errors.Is(err, agent.ErrBooked) ||
		fault.KindOf(err) != fault.Conflict {
		t.Errorf("booked twice: %v", err)
	}
	if _, err := n.book.Take(ctx, a); !errors.Is(err, agent.ErrBooked) {
		t.Errorf("taken from a live worker: %v", err)
	}
	if err := held.HandOver(ctx); fault.KindOf(err) != fault.Invalid {
		t.Errorf("handed over without a segment: %v", err)
	}
	n.seal(t, a)
	if err := errors.Join(held.SetStage(ctx, job.Synthesizing), held.HandOver(ctx)); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"stage": held.SetStage(ctx, job.Proving), "hand over": held.HandOver(ctx), "rebook": held.Rebook(ctx, gib(1)),
	} {
		if !errors.Is(err, agent.ErrMoved) {
			t.Errorf("%s after it was handed over: %v", what, err)
		}
	}
	if _, err := synth.Admit(ctx, agent.Request{Attempt: a, Amounts: amounts}); !errors.Is(err, agent.ErrHandedOver) {
		t.Errorf("admitted again: %v", err)
	}
	if err := synth.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[job.Attempt]bool{a: true}, n.alive(t)); diff != "" {
		t.Errorf("handed over, its worker gone: %s", diff)
	}
	taken, err := n.book.Take(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(taken.SetStage(ctx, job.Proving),
		taken.Shrink(ctx, ledger.Amounts{ledger.PoolRAM: bytesize.GiB})); err != nil {
		t.Fatal(err)
	}
	if err := taken.Shrink(ctx, gib(3)); fault.KindOf(err) != fault.Invalid {
		t.Errorf("shrunk by more than there is: %v", err)
	}
	checkProving(t, n, a, taken)
	if err := errors.Join(taken.Remove(ctx), taken.Remove(ctx)); err != nil || n.book.Booked(a) {
		t.Errorf("removed: %v", err)
	}
	if _, err := n.book.Take(ctx, a); !errors.Is(err, agent.ErrNotBooked) || fault.KindOf(err) != fault.NotFound {
		t.Errorf("taken from nobody: %v", err)
	}
}

// checkProving compares a booking and the book with what has happened to the attempt by then.
func checkProving(t *testing.T, n *node, a job.Attempt, taken *agent.Held) {
	t.Helper()
	want := agent.Booking{
		Version: 1, Attempt: a, Circuit: circuitID, Device: "gpu0", Stage: job.Proving,
		Amounts: ledger.Amounts{ledger.PoolRAM: 2 * bytesize.GiB, ledger.PoolSHM: bytesize.MiB}, Shrunk: gib(1),
		Owner: agent.Owner{Instance: "here", Role: "gpu"},
	}
	ignore := cmpopts.IgnoreFields(agent.Booking{}, "At", "Owner.Process")
	if diff := cmp.Diff(want, taken.Booking(), ignore); diff != "" {
		t.Error(diff)
	}
	l, err := n.book.List(t.Context())
	if err != nil || len(l.Entries) != 1 || !l.Entries[0].Alive {
		t.Fatalf("list %+v, %v", l, err)
	}
	if diff := cmp.Diff(want, l.Entries[0].Booking, ignore); diff != "" {
		t.Errorf("in the book: %s", diff)
	}
}

func TestRebookChangesThePoolOrNothing(t *testing.T) {
	t.Parallel()
	n, ctx := newNode(t), t.Context()
	held := n.mustAdmit(t, attempt(1, 0, 1),
		ledger.Amounts{ledger.PoolSHM: bytesize.MiB, ledger.PoolRAM: 30 * bytesize.GiB})
	var veto *agent.Veto
	if err := held.Rebook(ctx, ledger.Amounts{ledger.PoolDisk: 9 * bytesize.GiB}); !errors.As(err, &veto) {
		t.Errorf("9 of 8 GiB: %v", err)
	}
	if got := held.Booking().Amounts; got[ledger.PoolSHM] != bytesize.MiB {
		t.Errorf("after the veto %v", got)
	}
	// What it holds itself does not stand in its way.
	disk := ledger.Amounts{ledger.PoolDisk: bytesize.MiB, ledger.PoolRAM: 35 * bytesize.GiB}
	if err := held.Rebook(ctx, disk); err != nil {
		t.Fatal(err)
	}
	l, err := n.book.List(ctx)
	if err != nil || len(l.Entries) != 1 {
		t.Fatal(err)
	}
	if diff := cmp.Diff(disk, l.Entries[0].Amounts); diff != "" {
		t.Error(diff)
	}
}

// TestWorkersCompeteForTheLastBytes: four processes book at once; together they get the capacity, no byte more
// (invariant 1).
func TestWorkersCompeteForTheLastBytes(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	workers := make([]*worker, 4)
	for i := range workers {
		workers[i] = start(t, "compete", n.path, "worker-"+strconv.Itoa(i), i+1)
	}
	total := 0
	for _, w := range workers {
		count, err := strconv.Atoi(w.until(t, "booked"))
		if err != nil {
			t.Fatal(err)
		}
		total += count
	}
	if total != 40 || len(n.alive(t)) != 40 {
		t.Errorf("%d booked, %d in the book, capacity for 40", total, len(n.alive(t)))
	}
}

func TestAssetIsBookedOnceWhileAnyWorkerHoldsIt(t *testing.T) {
	t.Parallel()
	n, ctx := newNode(t), t.Context()
	other := n.open(t, "other", "synth")
	srs := ledger.Asset{Name: "srs:toy", Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: 25 * bytesize.GiB}
	hold := func(b *agent.Book) func() error {
		release, err := b.HoldAsset(ctx, srs)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	first, second, third := hold(n.book), hold(n.book), hold(other)
	var veto *agent.Veto
	if _, err := n.book.Admit(ctx, agent.Request{Attempt: attempt(1, 0, 1), Amounts: gib(16)}); !errors.As(err, &veto) ||
		veto.FreeBytes != 15*bytesize.GiB || veto.Holders[0] != "srs:toy 25 GiB" {
		t.Errorf("beside the asset: %v", err)
	}
	larger := srs
	larger.Bytes++
	if _, err := other.HoldAsset(ctx, larger); fault.KindOf(err) != fault.Conflict {
		t.Errorf("another size: %v", err)
	}
	if _, err := n.book.HoldAsset(ctx, ledger.Asset{
		Name: "srs:big", Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: 16 * bytesize.GiB,
	}); !errors.As(err, &veto) {
		t.Errorf("an asset that does not fit: %v", err)
	}
	assets := func() int {
		l, err := n.book.List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return len(l.Assets)
	}
	for i, release := range []func() error{first, first, second} {
		if err := release(); err != nil || assets() != 1 {
			t.Errorf("release %d: %v, %d assets", i, err, assets())
		}
	}
	if err := third(); err != nil || assets() != 0 {
		t.Errorf("last release: %v, %d assets", err, assets())
	}
	// A holder that dies lets go, too; then it may come back with another size.
	hold(other)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := n.book.Mend(ctx, nil)
	if err != nil || len(m.AssetsRemoved) != 1 || !m.Changed() || assets() != 0 {
		t.Errorf("mended %+v, %v", m, err)
	}
}

// TestFreeSegmentsGiveWayAndAreLent: the pool counts, is lent at admission, and goes when an attempt needs the bytes.
func TestFreeSegmentsGiveWayAndAreLent(t *testing.T) {
	t.Parallel()
	n, ctx := newNode(t), t.Context()
	file := n.spill.FileBytes(handoff.SHM, 10_000)
	n.seal(t, attempt(9, 0, 1))
	n.seal(t, attempt(9, 1, 1))
	for i := range 2 {
		if err := n.spill.Reclaim(attempt(9, i, 1)); err != nil {
			t.Fatal(err)
		}
	}
	free := func() bytesize.Bytes {
		f, err := n.spill.FreeBytes()
		if err != nil {
			t.Fatal(err)
		}
		return f[handoff.SHM]
	}
	n.capacity[ledger.PoolSHM] = 2 * file
	segment := ledger.Amounts{ledger.PoolSHM: file, ledger.PoolRAM: file}
	_, err := n.book.Admit(ctx, agent.Request{
		Attempt: attempt(1, 0, 1), Circuit: circuitID, Amounts: segment, SegmentBytes: 10_000, SegmentKind: handoff.SHM,
	})
	if err != nil || free() != file {
		t.Fatalf("first: %v, %s free; one should be lent, one kept", err, free())
	}
	d, err := n.spill.Create(ctx, handoff.Spec{Attempt: attempt(1, 0, 1), Circuit: circuitID, Bytes: 10_000})
	if err != nil || !d.Reused() {
		t.Fatalf("what was lent is not used: %v", err)
	}
	// The next one is of another size: the free segment must go for it.
	if _, err := n.book.Admit(ctx, agent.Request{
		Attempt: attempt(1, 1, 1), Circuit: circuitID, Amounts: segment, SegmentBytes: 9_000, SegmentKind: handoff.SHM,
	}); err != nil || free() != 0 {
		t.Errorf("second: %v, %s free", err, free())
	}
	var veto *agent.Veto
	if _, err := n.book.Admit(ctx, agent.Request{Attempt: attempt(1, 2, 1), Amounts: segment}); !errors.As(err, &veto) ||
		veto.Pool != ledger.PoolSHM {
		t.Errorf("third: %v", err)
	}
	if err := d.GiveBack(); err != nil {
		t.Fatal(err)
	}
}

// TestFreeSegmentInUseCannotGiveWay: bytes that a process still holds are not given away (invariant 1).
func TestFreeSegmentInUseCannotGiveWay(t *testing.T) {
	t.Parallel()
	n, ctx := newNode(t), t.Context()
	a := attempt(9, 0, 1)
	n.seal(t, a)
	seg, err := n.spill.Open(ctx, handoff.Want{Attempt: a, Circuit: circuitID})
	if err != nil {
		t.Fatal(err)
	}
	again, err := n.spill.Open(ctx, handoff.Want{Attempt: a, Circuit: circuitID})
	if err != nil {
		t.Fatal(err)
	}
	if err := seg.GiveBack(); err != nil {
		t.Fatal(err)
	}
	n.capacity[ledger.PoolSHM] = n.spill.FileBytes(handoff.SHM, 10_000)
	need := ledger.Amounts{ledger.PoolSHM: 1}
	var veto *agent.Veto
	if _, err := n.book.Admit(ctx, agent.Request{Attempt: attempt(1, 0, 1), Amounts: need}); !errors.As(err, &veto) {
		t.Errorf("admitted over a segment in use: %v", err)
	}
	if n.book.Booked(attempt(1, 0, 1)) {
		t.Error("the veto left a booking")
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	n.mustAdmit(t, attempt(1, 0, 1), need)
}

func TestBookRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	n, ctx := newNode(t), t.Context()
	for name, text := range map[string]string{
		attempt(1, 0, 1).String(): "{",
		attempt(1, 1, 1).String(): `{"v":1,"attempt":{"job":"x"}}`,
		attempt(1, 2, 1).String(): `{"v":7}`,
		"asset~ram~srs:toy":       `{"name":"srs:other","pool":"ram","bytes":1}`,
	} {
		at := filepath.Join(n.path, "book", name)
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := n.book.Admit(ctx, agent.Request{Attempt: attempt(2, 0, 1), Amounts: gib(1)}); fault.KindOf(err) !=
			fault.Corrupt {
			t.Errorf("%s: admitted: %v", name, err)
		}
		if l, err := n.book.List(ctx); err != nil || l.Complete {
			t.Errorf("%s: listed as complete: %v", name, err)
		}
		if m, err := n.book.Mend(ctx, nil); err != nil || !m.Changed() {
			t.Errorf("%s: mended %+v, %v", name, m, err)
		}
		n.mustAdmitAndRemove(t, attempt(2, 0, 1))
	}
	// What is not the book's does not disturb it and is left alone.
	foreign := filepath.Join(n.path, "book", "notes.txt")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.mustAdmitAndRemove(t, attempt(2, 0, 1))
	if _, err := os.Lstat(foreign); err != nil {
		t.Error(err)
	}
}

func (n *node) mustAdmitAndRemove(t *testing.T, a job.Attempt) {
	t.Helper()
	if err := n.mustAdmit(t, a, gib(1)).Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestOpenBookChecksItsConfig(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	full := func() (ledger.Amounts, error) { return nil, nil }
	for name, c := range map[string]agent.BookConfig{
		"relative":    {Path: "x", Instance: "i", Capacity: full, Group: -1},
		"no instance": {Path: n.path, Capacity: full, Group: -1},
		"escape":      {Path: n.path, Instance: "../x", Capacity: full, Group: -1},
		"no capacity": {Path: n.path, Instance: "i", Group: -1},
		"wait":        {Path: n.path, Instance: "i", Capacity: full, LockWait: -1, Group: -1},
		"no folder":   {Path: filepath.Join(n.path, "a", "b"), Instance: "i", Capacity: full, Group: -1},
	} {
		if _, err := agent.OpenBook(c); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := agent.OpenBook(agent.BookConfig{Path: n.path, Instance: "here", Capacity: full, Group: -1}); fault.KindOf(
		err) != fault.Conflict {
		t.Errorf("an instance twice: %v", err)
	}
	closed := n.open(t, "closed", "synth")
	if err := errors.Join(closed.Close(), closed.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := closed.List(t.Context()); !errors.Is(err, agent.ErrBookClosed) {
		t.Errorf("a closed book: %v", err)
	}
}

// TestStoppedHolderOfTheLockIsWaitedForWithALimit: the lock of the book is held by somebody who does not go on.
func TestStoppedHolderOfTheLockIsWaitedForWithALimit(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	hasty, err := agent.OpenBook(agent.BookConfig{
		Path: n.path, Group: -1, Instance: "hasty", Role: "synth", LockWait: time.Millisecond,
		Capacity: func() (ledger.Amounts, error) { return capacity(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer hasty.Close()
	unlock := holdBookLock(t, n.path)
	request := agent.Request{Attempt: attempt(1, 0, 1), Amounts: gib(1)}
	if _, err := hasty.Admit(t.Context(), request); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("past the limit: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.book.Admit(ended, request); fault.KindOf(err) != fault.Cancelled {
		t.Errorf("past its context: %v", err)
	}
	unlock()
	if _, err := hasty.Admit(t.Context(), request); err != nil {
		t.Error(err)
	}
}
