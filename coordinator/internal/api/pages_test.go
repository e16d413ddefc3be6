package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// largeRack is what a leader says of a rack of so many nodes, each with some devices and bookings.
func largeRack(nodes int) (*wire.NodesReply, *wire.LedgerReply) {
	rack, books := &wire.NodesReply{Ready: true, Leader: "me"}, &wire.LedgerReply{}
	amounts := ledger.Amounts{"ram": 1 << 40, "shm": 1 << 39, "disk": 1 << 41, "vram:gpu0": 1 << 36}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for i := range nodes {
		v := wire.NodeView{
			Node: job.Node(fmt.Sprintf("node-%04d", i)), Ready: true, SeenAt: at, Capacity: amounts, Reserved: amounts,
			Processes: []wire.ProcessView{{Instance: strings.Repeat("i", 36), Build: strings.Repeat("b", 40)}},
		}
		n := wire.LedgerNode{Node: v.Node, Declared: true, Capacity: amounts, Held: amounts}
		for d := range 16 {
			v.Devices = append(v.Devices, wire.DeviceView{
				Device: job.Device(fmt.Sprintf("gpu%d", d)), UUID: strings.Repeat("u", 40), Name: strings.Repeat("n", 40),
				Healthy: true, Circuits: []string{"porep-32GiB", "porep-64GiB", "porep-32GiB-ni"},
			})
		}
		for e := range 32 {
			n.Entries = append(n.Entries, wire.LedgerEntry{
				Name: fmt.Sprintf("01890a5d-ac96-774b-bcce-b302099a8057.%03d.1", e), Amounts: amounts, Since: at, LeaseAt: &at,
				Owner: job.MainTenant,
			})
		}
		rack.Nodes, books.Nodes = append(rack.Nodes, v), append(books.Nodes, n)
	}
	return rack, books
}

// served is a bus that answers a verb of operators.
func served[Q any, A any, QP interface {
	*Q
	wire.Body
}](t *testing.T, verb string, handle func(QP) (*A, error)) bus.Bus {
	t.Helper()
	b := membus.New(membus.Config{}).Connect(bus.Events{})
	t.Cleanup(b.Close)
	_, err := b.Serve(bus.Service{Name: "s", Version: Version, Endpoints: []bus.Endpoint{
		endpoint("e", wire.AdminSubject(verb), func(_ context.Context, _ string, q QP) (*A, error) { return handle(q) }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A rack of 500 nodes is answered in pages that messages carry; together they are the rack.
func TestALargeRackIsAnsweredInPages(t *testing.T) {
	t.Parallel()
	rack, books := largeRack(500)
	if _, err := wire.Encode(rack); fault.KindOf(err) != fault.Exhausted {
		t.Fatalf("the rack of this test fits into one message (%v): it shows nothing", err)
	}
	pages := 0
	b := served(t, wire.AdminNodes, func(q *wire.PageRequest) (*wire.NodesReply, error) {
		pages++
		page := *rack
		pageNodes(&page, q.After)
		return &page, nil
	})
	got, err := client.Nodes(t.Context(), b, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rack, got); diff != "" || pages < 2 {
		t.Errorf("%d pages, %d nodes: %.1000s", pages, len(got.Nodes), diff)
	}
	pages = 0
	b = served(t, wire.AdminLedger, func(q *wire.PageRequest) (*wire.LedgerReply, error) {
		pages++
		page := wire.LedgerReply{Nodes: append([]wire.LedgerNode(nil), books.Nodes...)}
		for i := range page.Nodes {
			page.Nodes[i].Entries = append([]wire.LedgerEntry(nil), page.Nodes[i].Entries...)
		}
		pageLedger(&page, q.After)
		return &page, nil
	})
	gotBooks, err := client.Ledger(t.Context(), b, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(books, gotBooks); diff != "" || pages < 2 {
		t.Errorf("%d pages, %d books: %.1000s", pages, len(gotBooks.Nodes), diff)
	}
}

// One node may hold more than a message carries.
func TestALargeBookIsAnsweredInPages(t *testing.T) {
	t.Parallel()
	_, books := largeRack(3)
	long := &books.Nodes[1].Entries
	for i := range 5000 {
		e := (*long)[0]
		e.Name = fmt.Sprintf("01890a5d-ac96-774b-bcce-b302099a8058.0.%05d", i)
		*long = append(*long, e)
	}
	seen := map[string]bool{}
	after := ""
	for range 100 {
		page := wire.LedgerReply{Nodes: append([]wire.LedgerNode(nil), books.Nodes...)}
		for i := range page.Nodes {
			page.Nodes[i].Entries = append([]wire.LedgerEntry(nil), page.Nodes[i].Entries...)
		}
		pageLedger(&page, after)
		if _, err := wire.Encode(&page); err != nil {
			t.Fatal(err)
		}
		for _, n := range page.Nodes {
			for _, e := range n.Entries {
				if at := string(n.Node) + e.Name; seen[at] {
					t.Fatalf("entry %s is on two pages", at)
				} else {
					seen[at] = true
				}
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if want := 3*32 + 5000; len(seen) != want || after != "" {
		t.Errorf("%d entries of %d, at the end %q", len(seen), want, after)
	}
}

// A job of many partitions may wait for many reasons, each with many who hold what it needs.
func TestALongWhyIsCutHonestly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ reasons, holders int }{{3, 3}, {200, 200}, {3000, 20}} {
		var reasons []wire.Reason
		for i := range c.reasons {
			r := wire.Reason{Partitions: []int{i}, Text: strings.Repeat("t", 200), Node: "n1", Pool: "ram", Missing: 1}
			for k := range c.holders {
				r.Holders = append(r.Holders, wire.Holder{Name: strings.Repeat("h", 42), Bytes: bytesize.Bytes(c.holders - k)})
			}
			reasons = append(reasons, r)
		}
		got := boundReasons(reasons)
		if _, err := wire.Encode(&wire.WhyReply{Reasons: got}); err != nil {
			t.Fatal(err)
		}
		partitions := 0
		for _, r := range got {
			partitions += len(r.Partitions)
			sum := bytesize.Bytes(0)
			for _, h := range r.Holders {
				sum += h.Bytes
			}
			if want := c.holders * (c.holders + 1) / 2; len(r.Holders) > 0 && int(sum) != want {
				t.Fatalf("holders of %d bytes, said are %d", want, sum)
			}
		}
		if partitions != c.reasons {
			t.Errorf("%d partitions of %d have a reason", partitions, c.reasons)
		}
	}
}

// All dead letters can be listed, however many there are and however long their reasons.
func TestDeadLettersAreAnsweredInPages(t *testing.T) {
	t.Parallel()
	server := membus.New(membus.Config{})
	b := server.Connect(bus.Events{})
	t.Cleanup(b.Close)
	size := 64 * bytesize.MiB
	err := b.Setup(t.Context(), bus.Topology{
		Streams: []bus.Stream{{
			Name: wire.StreamDLQ, Subjects: []string{wire.AllDLQ}, Retention: bus.Limits, BytesMax: size, DropOldest: true,
		}},
		Buckets: []bus.Bucket{{Name: wire.BucketJobs, BytesMax: size}, {Name: wire.BucketNodes, BytesMax: size}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), b, store.DefaultConfig(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	const count = 700
	for range count {
		_, err := s.Update(t.Context(), accepted(t, s).ID, func(r *job.Record) error {
			return r.FailWhole(&fault.Report{Kind: fault.Device, Message: strings.Repeat("<", 1000)}, time.Now())
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	leading := &Leading{Store: s, Bus: b}
	asked := served(t, wire.AdminDLQ, func(q *wire.DLQRequest) (*wire.DLQReply, error) {
		return leading.dlq(t.Context(), "", q)
	})
	all, err := client.Letters(t.Context(), asked, time.Millisecond)
	if err != nil || len(all.Letters) != count {
		t.Fatalf("%d letters of %d: %v", len(all.Letters), count, err)
	}
	for i := 1; i < count; i++ {
		if all.Letters[i].Job >= all.Letters[i-1].Job {
			t.Fatalf("letter %d is not older than the one before", i)
		}
	}
}

// A long list of speeds is told in pages, each within the bound, none left out or told twice.
func TestSpeedsComeInPages(t *testing.T) {
	t.Parallel()
	all := make([]wire.StageSpeed, 6_000)
	for i := range all {
		all[i] = wire.StageSpeed{Circuit: "c", Node: job.Node(fmt.Sprintf("node-%05d", i)), Device: "gpu0", At: time.Now()}
	}
	var told []wire.StageSpeed
	pages := 0
	for from := 0; pages == 0 || from > 0; pages++ {
		reply := &wire.MemoryReply{Sizes: make([]wire.MemorySize, 300), Speeds: all}
		pageSpeeds(reply, from)
		if data, err := wire.Encode(reply); err != nil {
			t.Fatalf("page of %d: %v", len(data), err)
		}
		told, from = append(told, reply.Speeds...), reply.SpeedsNext
	}
	if pages < 2 || !slices.Equal(told, all) {
		t.Errorf("%d pages, %d of %d speeds", pages, len(told), len(all))
	}
	reply := &wire.MemoryReply{Speeds: all[:1]}
	if pageSpeeds(reply, 7); len(reply.Speeds) != 0 || reply.SpeedsNext != 0 {
		t.Errorf("beyond the end: %+v", reply)
	}
}
