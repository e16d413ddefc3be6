package dispatch_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// Invariant 2: bytes that an attempt gives back while it goes on are given back once, however often its report comes.
func TestAReportOfKeptBytesThatComesTwiceGivesThemBackOnce(t *testing.T) {
	t.Parallel()
	onTight(t, func(r *tight) {
		r.lead(1)
		for range 2 {
			time.Sleep(time.Second)
			r.report()
		}
		id := r.submit(1)
		time.Sleep(2 * time.Second)
		a := job.Attempt{Job: id, Fence: 1}
		entry := func() *ledger.Entry {
			book, err := r.books.Open().Node(t.Context(), "n1")
			r.check(err)
			return book.Entry(a)
		}
		if entry() == nil {
			t.Fatal("nothing was granted")
		}
		keeps := ledger.Amounts{ledger.PoolRAM: bytesize.MiB + bytesize.MiB/2, ledger.PoolSHM: bytesize.MiB / 2}
		data, err := wire.Encode(&wire.Report{Attempt: a, Node: "n1", Keeps: keeps})
		r.check(err)
		for range 3 {
			r.check(r.bus.Send(t.Context(), bus.Message{Subject: wire.ReportSubject("n1"), Data: data}))
			time.Sleep(time.Second)
			if diff := cmp.Diff(keeps, entry().Amounts); diff != "" {
				t.Errorf("booked (-kept +have):\n%s", diff)
			}
		}
		r.stop()
	})
}
