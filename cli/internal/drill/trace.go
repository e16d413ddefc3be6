package drill

import (
	"cmp"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// trace is what faults leave that a client sees. A means that does nothing leaves none, and then a rack that goes on
// has shown nothing. What was noted before strike does not count.
type trace struct {
	unanswered int // looks that the rack did not answer
	silent     time.Duration
	unready    string
	term       uint64 // when it struck
	terms      uint64 // by how much it rose since
	books      map[job.Node]book
	closed     string // a book that was closed
	lost       string // a book that had to be declared anew, under the same leader
	failed     string // an attempt that failed or was lost
	handoff    string // one that could not hand over in memory
	shrunk     string // a pool that has less than half of what it had when it struck
	gone       string // a job that is not known any more
}

// silenceLeast is a time without an answer that tells something: clients wait for a server that comes back.
const silenceLeast = time.Second

type book struct {
	openings uint64
	shm      bytesize.Bytes
}

// strike has what is seen from now on count.
func (t *trace) strike(s *seen) {
	*t = trace{books: map[job.Node]book{}}
	if s.nodes != nil {
		t.term = s.nodes.Term
	}
	for i := range s.books {
		b := &s.books[i]
		t.books[b.Node] = book{b.Openings, b.Capacity[ledger.PoolSHM]}
	}
}

func (t *trace) lookAtNodes(nodes *wire.NodesReply) {
	if reason := unready(nodes); reason != "" {
		t.unready = reason
	}
	if nodes.Term > t.term {
		t.terms = nodes.Term - t.term
	}
}

func (t *trace) lookAtBooks(books []wire.LedgerNode) {
	for i := range books {
		b := &books[i]
		before, known := t.books[b.Node]
		switch {
		case !b.Declared:
			t.closed = fmt.Sprintf("the book of node %s was closed", b.Node)
		case known && t.terms == 0 && b.Openings > before.openings:
			t.lost = fmt.Sprintf("node %s declared anew: %s", b.Node, b.OpenedWhy)
		case known && b.Capacity[ledger.PoolSHM] < before.shm/2:
			t.shrunk = fmt.Sprintf("node %s had %s of %s for segments", b.Node, b.Capacity[ledger.PoolSHM],
				before.shm)
		}
	}
}

func (t *trace) lookForJob(id job.ID) {
	t.gone = fmt.Sprintf("job %s was not known any more", id)
}

func (t *trace) lookAtRecord(r *job.Record) {
	for i := range r.Partitions {
		p := &r.Partitions[i]
		for k := range p.Attempts {
			a := &p.Attempts[k]
			if a.Fault != nil {
				t.failed = fmt.Sprintf("attempt %d of partition %d: %s", a.Fence, i, a.Fault.Message)
			} else if k+1 < len(p.Attempts) {
				t.failed = fmt.Sprintf("attempt %d of partition %d was lost", a.Fence, i)
			}
			if a.HandoffReason != "" {
				t.handoff = fmt.Sprintf("attempt %d of partition %d went by %s: %s", a.Fence, i, a.Handoff, a.HandoffReason)
			}
		}
	}
}

// of gives what was seen of a fault, or "" when nothing shows that it happened.
func (t *trace) of(name string) string {
	silence, term := "", ""
	if t.unanswered > 0 || t.silent >= silenceLeast {
		silence = fmt.Sprintf("%d looks were not answered, and none for %s", t.unanswered,
			t.silent.Round(100*time.Millisecond))
	}
	if t.terms > 0 {
		term = fmt.Sprintf("the term rose by %d", t.terms)
	}
	switch name {
	case Worker:
		return cmp.Or(t.failed, t.unready)
	case Pause:
		return cmp.Or(t.failed, t.unready, silence, term)
	case Leader:
		return term
	case Broker:
		return cmp.Or(silence, term, t.unready)
	case Store:
		return cmp.Or(t.lost, t.closed, silence, t.unready)
	case Wipe:
		return cmp.Or(t.lost, t.closed)
	case Spill:
		return cmp.Or(t.handoff, t.failed, t.shrunk, t.unready)
	}
	return t.gone // Everything
}
