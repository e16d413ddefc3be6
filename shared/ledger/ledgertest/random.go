package ledgertest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

const node job.Node = "n1"

// pair is a ledger under test and the machine, at the same time of day.
type pair struct {
	tb      testing.TB
	backend Backend
	client  ledger.Ledger
	machine *ledger.Machine
	call    ledger.Call
	now     time.Time
	seq     uint64
}

func (p *pair) stamp() ledger.Stamp {
	return ledger.Stamp{Now: p.now, Run: "r", Seen: p.machine.Ops(node)}
}

// Each drawn operation gives its answer from both.
func (p *pair) step(t *rapid.T) (string, string) {
	ctx := context.Background()
	switch rapid.SampledFrom([]string{
		"reserve", "reserve", "reserve", "transfer", "renew", "shrink", "release", "release", "expire", "evict", "declare",
		"advance",
	}).Draw(t, "operation") {
	case "advance":
		d := time.Second * time.Duration(rapid.SampledFrom([]int{1, 4, 9, 20, -3, -70}).Draw(t, "seconds"))
		p.now = p.now.Add(d)
		p.backend.Advance(p.tb, d)
		return "", ""
	case "reserve":
		r := drawReservation(t)
		return answer(p.machine.Reserve(p.stamp(), p.call, r), "ok"), answer(p.client.Reserve(ctx, p.call, r), "ok")
	case "transfer":
		from, r := drawAttempt(t), drawReservation(t)
		return answer(p.machine.Transfer(p.stamp(), p.call, from, r), "ok"),
			answer(p.client.Transfer(ctx, p.call, from, r), "ok")
	case "renew":
		all := rapid.SliceOfN(rapid.Custom(drawAttempt), 0, 3).Draw(t, "renewed")
		want, wantErr := p.machine.Renew(p.stamp(), p.call, node, all)
		got, err := p.client.Renew(ctx, p.call, node, all)
		return answer(wantErr, "%s", list(want)), answer(err, "%s", list(got))
	case "shrink":
		a, keep := drawAttempt(t), drawAmounts(t)
		return answer(p.machine.Shrink(p.stamp(), p.call, node, a, keep), "ok"),
			answer(p.client.Shrink(ctx, p.call, node, a, keep), "ok")
	case "release":
		a := drawAttempt(t)
		want, wantErr := p.machine.Release(p.stamp(), p.call, node, a)
		got, err := p.client.Release(ctx, p.call, node, a)
		return answer(wantErr, "%t", want), answer(err, "%t", got)
	case "expire":
		want, wantErr := p.machine.Expire(p.stamp(), p.call, node)
		got, err := p.client.Expire(ctx, p.call, node)
		return answer(wantErr, "%s", list(want)), answer(err, "%s", list(got))
	case "evict":
		name := drawAsset(t).Name
		want, wantErr := p.machine.Evict(p.stamp(), p.call, node, name)
		got, err := p.client.Evict(ctx, p.call, node, name)
		return answer(wantErr, "%t", want), answer(err, "%t", got)
	default:
		d := p.drawDeclaration(t)
		want, wantErr := p.machine.Declare(p.stamp(), p.call, d)
		got, err := p.client.Declare(ctx, p.call, d)
		return answer(wantErr, "%s", describe(want)), answer(err, "%s", describe(got))
	}
}

func drawAttempt(t *rapid.T) job.Attempt {
	return job.Attempt{
		Job: jobID(rapid.IntRange(1, 2).Draw(t, "job")), Partition: rapid.IntRange(0, 1).Draw(t, "partition"),
		Fence: rapid.Uint64Range(1, 3).Draw(t, "fence"),
	}
}

func drawAmounts(t *rapid.T) ledger.Amounts {
	a := ledger.Amounts{}
	for _, pool := range []ledger.Pool{ledger.PoolRAM, ledger.PoolSHM, ledger.PoolVRAM("gpu0")} {
		a[pool] = bytesize.Bytes(rapid.IntRange(0, 40).Draw(t, "amount"))
	}
	return a
}

func drawAsset(t *rapid.T) ledger.Asset {
	return ledger.Asset{
		Name:  rapid.SampledFrom([]string{"srs:x", "srs:y"}).Draw(t, "asset"),
		Pool:  rapid.SampledFrom([]ledger.Pool{ledger.PoolRAM, ledger.PoolVRAM("gpu0")}).Draw(t, "pool"),
		Class: ledger.ClassSRS, Bytes: bytesize.Bytes(rapid.IntRange(0, 30).Draw(t, "bytes")),
	}
}

func drawAssets(t *rapid.T) []ledger.Asset {
	return rapid.SliceOfNDistinct(rapid.Custom(drawAsset), 0, 2, func(a ledger.Asset) ledger.AssetKey { return a.Key() }).
		Draw(t, "assets")
}

func drawReservation(t *rapid.T) *ledger.Reservation {
	return &ledger.Reservation{Attempt: drawAttempt(t), Node: node, Amounts: drawAmounts(t), Assets: drawAssets(t)}
}

// drawDeclaration is what a host could say: mostly what is booked there, sometimes less, rarely something else.
func (p *pair) drawDeclaration(t *rapid.T) *ledger.Declaration {
	p.seq += uint64(rapid.IntRange(0, 2).Draw(t, "seq"))
	d := &ledger.Declaration{
		Node: node, Boot: "b1", Instance: "i1", Seq: p.seq, Partial: rapid.IntRange(0, 4).Draw(t, "partial") == 0,
		Capacity: ledger.Amounts{ledger.PoolRAM: 100, ledger.PoolSHM: 60, ledger.PoolVRAM("gpu0"): 80},
		Assets:   drawAssets(t),
	}
	if b, err := p.machine.Node(p.stamp(), node); err == nil {
		for _, e := range b.Entries {
			if rapid.IntRange(0, 3).Draw(t, "held") > 0 {
				d.Holdings = append(d.Holdings, ledger.Holding{Attempt: e.Attempt, Amounts: e.Amounts})
			}
		}
	}
	if a := drawAttempt(t); rapid.IntRange(0, 9).Draw(t, "stranger") == 0 {
		for _, h := range d.Holdings {
			if h.Attempt == a {
				return d
			}
		}
		d.Holdings = append(d.Holdings, ledger.Holding{
			Attempt: a, Amounts: drawAmounts(t), Dead: rapid.Bool().Draw(t, "dead"),
			Assets: []ledger.AssetKey{{Name: "srs:x", Pool: ledger.PoolRAM}},
		})
	}
	d.Correction = rapid.IntRange(0, 3).Draw(t, "correction") == 0
	if rapid.IntRange(0, 3).Draw(t, "claims") == 0 {
		d.Claims = append(d.Claims, *drawReservation(t))
	}
	if rapid.Bool().Draw(t, "segments") {
		d.Assets = append(d.Assets, ledger.Asset{
			Name: ledger.AssetSegments, Pool: ledger.PoolSHM, Class: ledger.ClassScratch,
			Bytes: bytesize.Bytes(rapid.IntRange(0, 60).Draw(t, "free segments")),
		})
	}
	return d
}

// runRandom holds a backend to the machine, and both to invariants 1 and 2.
func runRandom(t *testing.T, backend func(testing.TB) Backend) {
	ctx := context.Background()
	shared := backend(t)
	term := uint64(0)
	rapid.Check(t, func(rt *rapid.T) {
		shared.Wipe(t)
		machine, err := ledger.NewMachine(ledger.Config{Lease: Lease})
		if err != nil {
			rt.Fatal(err)
		}
		term++
		p := &pair{tb: t, backend: shared, client: shared.Open(t), machine: machine, now: Start()}
		defer p.client.Close()
		defer func() { shared.Advance(t, Start().Sub(p.now)) }()
		if p.call, err = machine.Begin(term, "e1"); err != nil {
			rt.Fatal(err)
		}
		if _, err := p.client.Begin(ctx, term, "e1"); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			before, _ := machine.Node(p.stamp(), node)
			want, got := p.step(rt)
			if want != got {
				rt.Fatalf("the machine says %q, the ledger %q", want, got)
			}
			compare(rt, p, before)
		}
	})
}

// compare checks that both books are alike and keep the invariants.
func compare(t *rapid.T, p *pair, before *ledger.NodeBook) {
	want, wantErr := p.machine.Node(p.stamp(), node)
	got, err := p.client.Node(context.Background(), node)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("the machine says %v, the ledger %v", wantErr, err)
	}
	if err != nil {
		return
	}
	alike := cmp.Options{cmpopts.IgnoreFields(ledger.NodeBook{}, "Run", "Now"), cmpopts.EquateEmpty()}
	if diff := cmp.Diff(want, got, alike); diff != "" {
		t.Fatalf("the books differ (-machine +ledger):\n%s", diff)
	}
	if pools := got.Mismatch(); len(pools) > 0 {
		t.Fatalf("used is not the sum in %v", pools)
	}
	if before == nil {
		return
	}
	for _, pool := range got.Over() { // invariant 1: only a host's own word can pass the capacity
		if got.Seq == before.Seq && got.Used[pool] > before.Used[pool] {
			t.Fatalf("pool %s: granted up to %d of %d", pool, got.Used[pool], got.Capacity[pool])
		}
	}
}

// runClients races clients over one node: each reservation is released by three of them at once, and one of them
// alone may do it (invariant 2); the sum is right and within the capacity at every look (invariant 1).
func runClients(t *testing.T, b Backend) {
	const clients, rounds, capacity = 8, 40, 5
	ctx := context.Background()
	first := b.Open(t)
	call, err := first.Begin(ctx, 1, "e1")
	if err != nil {
		t.Fatal(err)
	}
	declaration := &ledger.Declaration{
		Node: node, Boot: "b", Instance: "i", Seq: 1, Capacity: ledger.Amounts{ledger.PoolRAM: capacity},
	}
	if _, err := first.Declare(ctx, call, declaration); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for c := range clients {
		l := b.Open(t)
		wg.Go(func() {
			for round := range rounds {
				a := job.Attempt{Job: jobID(c + 1), Partition: round, Fence: 1}
				err := l.Reserve(ctx, call, &ledger.Reservation{
					Attempt: a, Node: node, Amounts: ledger.Amounts{ledger.PoolRAM: 1},
				})
				if err != nil {
					if fault.KindOf(err) != fault.Exhausted {
						t.Error(err)
						return
					}
					continue
				}
				if err := releaseOnce(ctx, l, call, a); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for looking := true; looking; {
		select {
		case <-done:
			looking = false
		default:
		}
		book, err := first.Node(ctx, node)
		if err != nil {
			t.Fatal(err)
		}
		if used := book.Used[ledger.PoolRAM]; used > capacity || len(book.Mismatch()) > 0 {
			t.Fatalf("used %d of %d, mismatch in %v", used, capacity, book.Mismatch())
		}
	}
	book, err := first.Node(ctx, node)
	if err != nil || len(book.Entries) != 0 || len(book.Used) != 0 {
		t.Fatalf("after all: %v, %+v", err, book)
	}
}

// releaseOnce releases an attempt three times at once.
func releaseOnce(ctx context.Context, l ledger.Ledger, call ledger.Call, a job.Attempt) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	released := 0
	for range 3 {
		wg.Go(func() {
			ok, err := l.Release(ctx, call, node, a)
			mu.Lock()
			defer mu.Unlock()
			if ok && err == nil {
				released++
			}
		})
	}
	wg.Wait()
	if released != 1 {
		return fmt.Errorf("%s was released %d times", a, released)
	}
	return nil
}

// runAmounts books amounts that other encodings round (B69).
func runAmounts(t *testing.T, b Backend) {
	ctx := context.Background()
	l := b.Open(t)
	call, err := l.Begin(ctx, 1, "e1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Declare(ctx, call, &ledger.Declaration{
		Node: node, Boot: "b", Instance: "i", Seq: 1, Capacity: ledger.Amounts{ledger.PoolRAM: bytesize.Max},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		amount bytesize.Bytes
		kind   fault.Kind
	}{
		{100_000_000, ""}, {200_000_000_000, ""}, {1 << 37, ""}, {100_000_000_000_000, ""}, {1<<53 - 1, ""},
		{1 << 53, fault.Invalid}, {1<<53 + 1, fault.Invalid}, {0, ""}, {-1, fault.Invalid}, {1<<53 - 3, ""},
		{999_999_999_999_999, ""}, {1_000_000_000_000_000, ""}, {123_456_789_012_345, ""},
	} {
		a := job.Attempt{Job: jobID(1), Partition: i, Fence: 1<<53 - 1}
		r := &ledger.Reservation{Attempt: a, Node: node, Amounts: ledger.Amounts{ledger.PoolRAM: c.amount}}
		if err := l.Reserve(ctx, call, r); fault.KindOf(err) != c.kind {
			t.Errorf("reserve %d: %v", c.amount, err)
			continue
		}
		book, err := l.Node(ctx, node)
		if err != nil {
			t.Fatal(err)
		}
		want := max(c.amount, 0)
		if c.kind != "" {
			want = 0
		}
		if book.Used[ledger.PoolRAM] != want || len(book.Mismatch()) > 0 {
			t.Errorf("reserve %d: used is %d", c.amount, book.Used[ledger.PoolRAM])
		}
		if c.kind == "" && c.amount > 2 {
			keep := ledger.Amounts{ledger.PoolRAM: c.amount - 2}
			if err := l.Shrink(ctx, call, node, a, keep); err != nil {
				t.Error(err)
			}
			if book, err = l.Node(ctx, node); err != nil || book.Used[ledger.PoolRAM] != c.amount-2 {
				t.Errorf("shrink %d by 2: %v, used is %d", c.amount, err, book.Used[ledger.PoolRAM])
			}
		}
		if _, err := l.Release(ctx, call, node, a); err != nil {
			t.Error(err)
		}
		if book, err = l.Node(ctx, node); err != nil || len(book.Used) != 0 {
			t.Errorf("release %d: %v, used is %v", c.amount, err, book.Used)
		}
	}
}
