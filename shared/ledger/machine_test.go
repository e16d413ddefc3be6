package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// world drives a machine on one node, at one time of day.
type world struct {
	*ledger.Machine
	call ledger.Call
	now  time.Time
}

const node job.Node = "n1"

func newWorld(t testing.TB, capacity ledger.Amounts) *world {
	t.Helper()
	m, err := ledger.NewMachine(ledger.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Machine: m, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if w.call, err = m.Begin(1, "e1"); err != nil {
		t.Fatal(err)
	}
	d := &ledger.Declaration{Node: node, Boot: "b", Instance: "i", Seq: 1, Capacity: capacity}
	if _, err := m.Declare(w.stamp(), w.call, d); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) stamp() ledger.Stamp { return ledger.Stamp{Now: w.now, Run: "r", Seen: w.Ops(node)} }

func attempt(number, partition int, fence uint64) job.Attempt {
	return job.Attempt{
		Job: job.ID(fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", number)), Partition: partition, Fence: fence,
	}
}

func (w *world) reserve(a job.Attempt, ram bytesize.Bytes, assets ...ledger.Asset) error {
	return w.Reserve(w.stamp(), w.call, &ledger.Reservation{
		Attempt: a, Node: node, Amounts: ledger.Amounts{ledger.PoolRAM: ram}, Assets: assets,
	})
}

func (w *world) book(t testing.TB) *ledger.NodeBook {
	t.Helper()
	b, err := w.Node(w.stamp(), node)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Worker budget 8 units; two jobs of 3 units each that share 2 units of parameters: both run, and the book shows the
// sum.
func TestB40SharedAssetsAreCountedOncePerNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger.Amounts{ledger.PoolRAM: 8})
	params := ledger.Asset{Name: "srs:x", Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: 2}
	for i := range 2 {
		if err := w.reserve(attempt(1, i, 1), 3, params); err != nil {
			t.Fatal(err)
		}
	}
	b := w.book(t)
	if b.Used[ledger.PoolRAM] != 8 || b.Free(ledger.PoolRAM) != 0 || len(b.Assets) != 1 || b.Assets[0].Users != 2 {
		t.Errorf("book %+v", b)
	}
	var refusal *ledger.Refusal
	err := w.reserve(attempt(1, 2, 1), 1, params)
	if !errors.As(err, &refusal) || refusal.Need != 1 || refusal.Capacity != 8 || refusal.Never() {
		t.Fatalf("a third one: %v", err)
	}
	want := []ledger.Holder{
		{Attempt: attempt(1, 0, 1), Bytes: 3, Lease: 15 * time.Second},
		{Attempt: attempt(1, 1, 1), Bytes: 3, Lease: 15 * time.Second},
		{Asset: "srs:x", Bytes: 2, Users: 2},
	}
	if diff := cmp.Diff(want, refusal.Holders); diff != "" {
		t.Error(diff)
	}
	if err = w.reserve(attempt(1, 2, 1), 9); !errors.As(err, &refusal) || !refusal.Never() {
		t.Errorf("more than there is: %v", err)
	}
}

// Reclaimed by the sweeper, then released by the frozen worker: once, and never below 0 (invariant 2).
func TestB70ReleaseTwiceAfterReclaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger.Amounts{ledger.PoolRAM: 8})
	a := attempt(1, 0, 1)
	if err := w.reserve(a, 5); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		w.now = w.now.Add(5 * time.Second)
		if _, err := w.Expire(w.stamp(), w.call, node); err != nil {
			t.Fatal(err)
		}
	}
	if b := w.book(t); b.Used[ledger.PoolRAM] != 5 || !b.Entries[0].Limbo {
		t.Fatalf("after the lease: %+v", b)
	}
	if err := w.Forget(w.call, node); fault.KindOf(err) != fault.Conflict {
		t.Errorf("forget a node that holds bytes: %v", err)
	}
	d := &ledger.Declaration{
		Node: node, Boot: "b", Instance: "i", Seq: 2, Capacity: ledger.Amounts{ledger.PoolRAM: 8},
	}
	drift, err := w.Declare(w.stamp(), w.call, d)
	if err != nil || len(drift.Freed) != 1 {
		t.Fatalf("%+v, %v", drift, err)
	}
	if released, err := w.Release(w.stamp(), w.call, node, a); released || err != nil {
		t.Errorf("released twice: %t, %v", released, err)
	}
	if b := w.book(t); len(b.Used) != 0 || len(b.Mismatch()) != 0 {
		t.Errorf("after all: %+v", b)
	}
}

// Invariants 1 and 2 against a second, simpler account: what was granted less what was given back.
func TestInvariants1And2UnderRandomOperations(t *testing.T) {
	t.Parallel()
	capacity := ledger.Amounts{ledger.PoolRAM: 100, ledger.PoolSHM: 40}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, capacity)
		held := map[job.Attempt]ledger.Amounts{}
		assets := map[string]bytesize.Bytes{}
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			a := attempt(rapid.IntRange(1, 3).Draw(rt, "job"), 0, rapid.Uint64Range(1, 4).Draw(rt, "fence"))
			amounts := ledger.Amounts{
				ledger.PoolRAM: bytesize.Bytes(rapid.IntRange(0, 60).Draw(rt, "ram")),
				ledger.PoolSHM: bytesize.Bytes(rapid.IntRange(0, 30).Draw(rt, "shm")),
			}
			r := &ledger.Reservation{Attempt: a, Node: node, Amounts: amounts}
			if rapid.Bool().Draw(rt, "shared") {
				r.Assets = []ledger.Asset{{Name: "srs", Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: 20}}
			}
			switch rapid.IntRange(0, 5).Draw(rt, "operation") {
			case 0, 1:
				if err := w.Reserve(w.stamp(), w.call, r); err == nil {
					book(held, assets, r)
				}
			case 2:
				from := attempt(rapid.IntRange(1, 3).Draw(rt, "from"), 0, rapid.Uint64Range(1, 4).Draw(rt, "old"))
				if err := w.Transfer(w.stamp(), w.call, from, r); err == nil {
					delete(held, from)
					book(held, assets, r)
				}
			case 3:
				released, err := w.Release(w.stamp(), w.call, node, a)
				if _, was := held[a]; err != nil || released != was {
					rt.Fatalf("release %s: %t, %v; it was there: %t", a, released, err, was)
				}
				delete(held, a)
			case 4:
				if err := w.Shrink(w.stamp(), w.call, node, a, amounts); err == nil {
					for pool := range held[a] {
						held[a][pool] = min(held[a][pool], amounts[pool])
					}
				}
			case 5:
				w.now = w.now.Add(time.Duration(rapid.IntRange(0, 14).Draw(rt, "seconds")) * time.Second)
				if _, err := w.Expire(w.stamp(), w.call, node); err != nil {
					rt.Fatal(err)
				}
			}
			checkSum(rt, w.book(t), held, assets, capacity)
		}
		for a := range held {
			if released, err := w.Release(w.stamp(), w.call, node, a); !released || err != nil {
				rt.Fatalf("release %s: %t, %v", a, released, err)
			}
		}
		checkSum(rt, w.book(t), nil, assets, capacity) // after quiescence pools hold assets only
	})
}

func book(held map[job.Attempt]ledger.Amounts, assets map[string]bytesize.Bytes, r *ledger.Reservation) {
	if _, again := held[r.Attempt]; !again {
		held[r.Attempt] = r.Amounts.Clone()
	}
	for _, a := range r.Assets {
		assets[a.Name] = a.Bytes
	}
}

func checkSum(
	t *rapid.T, b *ledger.NodeBook, held map[job.Attempt]ledger.Amounts, assets map[string]bytesize.Bytes,
	capacity ledger.Amounts,
) {
	sum := ledger.Amounts{}
	for _, amounts := range held {
		for pool, amount := range amounts {
			sum[pool] += amount
		}
	}
	for _, bytes := range assets {
		sum[ledger.PoolRAM] += bytes
	}
	for pool := range capacity {
		if b.Used[pool] != sum[pool] || sum[pool] > capacity[pool] {
			t.Fatalf("pool %s: used %d, the sum is %d of %d", pool, b.Used[pool], sum[pool], capacity[pool])
		}
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger.Amounts{ledger.PoolRAM: 8})
	asset := ledger.Asset{Name: "srs:x", Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: 1}
	with := func(assets ...ledger.Asset) ledger.Reservation {
		return ledger.Reservation{Node: node, Attempt: attempt(1, 0, 1), Assets: assets}
	}
	for name, r := range map[string]ledger.Reservation{
		"node":           {Node: "../x", Attempt: attempt(1, 0, 1)},
		"attempt":        {Node: node, Attempt: job.Attempt{Job: "x", Fence: 1}},
		"fence 0":        {Node: node, Attempt: attempt(1, 0, 0)},
		"fence 2^53":     {Node: node, Attempt: attempt(1, 0, 1<<53)},
		"pool":           {Node: node, Attempt: attempt(1, 0, 1), Amounts: ledger.Amounts{"tape": 1}},
		"negative":       {Node: node, Attempt: attempt(1, 0, 1), Amounts: ledger.Amounts{ledger.PoolRAM: -1}},
		"2^53":           {Node: node, Attempt: attempt(1, 0, 1), Amounts: ledger.Amounts{ledger.PoolRAM: 1 << 53}},
		"asset twice":    with(asset, asset),
		"free segments":  with(ledger.Asset{Name: ledger.AssetSegments, Pool: "shm", Class: "scratch"}),
		"asset's class":  with(ledger.Asset{Name: "x", Pool: "shm", Class: "A|B"}),
		"asset's name":   with(ledger.Asset{Name: "x@y", Pool: "shm", Class: "srs"}),
		"too many of it": with(make([]ledger.Asset, ledger.AssetsMax+1)...),
	} {
		if err := w.Reserve(w.stamp(), w.call, &r); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(*ledger.Declaration){
		"boot":     func(d *ledger.Declaration) { d.Boot = "a|b" },
		"instance": func(d *ledger.Declaration) { d.Instance = strings.Repeat("x", 65) },
		"capacity": func(d *ledger.Declaration) { d.Capacity = ledger.Amounts{"x": 1} },
		"holding twice": func(d *ledger.Declaration) {
			d.Holdings = []ledger.Holding{{Attempt: attempt(1, 0, 1)}, {Attempt: attempt(1, 0, 1)}}
		},
		"claim twice": func(d *ledger.Declaration) {
			d.Claims = []ledger.Reservation{{Node: node, Attempt: attempt(1, 0, 1)}, {Node: node, Attempt: attempt(1, 0, 1)}}
		},
		"claim elsewhere": func(d *ledger.Declaration) {
			d.Claims = []ledger.Reservation{{Node: "n9", Attempt: attempt(1, 0, 1)}}
		},
		"more than can be counted": func(d *ledger.Declaration) {
			most := ledger.Amounts{ledger.PoolRAM: bytesize.Max}
			d.Holdings = []ledger.Holding{
				{Attempt: attempt(1, 0, 1), Amounts: most}, {Attempt: attempt(1, 1, 1), Amounts: most},
			}
		},
	} {
		d := &ledger.Declaration{Node: node, Boot: "b", Instance: "i", Seq: 9, Capacity: ledger.Amounts{}}
		change(d)
		before := w.book(t)
		if _, err := w.Declare(w.stamp(), w.call, d); fault.KindOf(err) != fault.Invalid {
			t.Errorf("declare, %s: %v", name, err)
		}
		if diff := cmp.Diff(before, w.book(t)); diff != "" {
			t.Errorf("declare, %s changed the book:\n%s", name, diff)
		}
	}
	for term, epoch := range map[uint64]string{0: "e", 1 << 53: "e", 1: "a|b"} {
		if _, err := w.Begin(term, epoch); fault.KindOf(err) != fault.Invalid {
			t.Errorf("begin %d %q: %v", term, epoch, err)
		}
	}
}
