package dispatch

import (
	"cmp"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/reconcile"
	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// track is what the loop keeps of an attempt, from its claim until its bytes are released.
type track struct {
	node    job.Node
	device  job.Device
	amounts ledger.Amounts
	// assets are what it was admitted with; nil in a later reign.
	assets []ledger.Asset
	// running tells that the record names it as the owner; endedAt is when it no longer did.
	running bool
	endedAt time.Time
	// unpublished tells that its task could not be published; duplicates is how often the stream said, when it was
	// published again, that it had the task already.
	unpublished bool
	duplicates  int
	// repair is what the last comparison of the truths asked for, since when; underWay that it is being done.
	repair      reconcile.Repair
	repairSince time.Time
	underWay    bool
	// provedAt is when it was first seen to be proved.
	provedAt time.Time
	// idleSince is since when its device had nothing to do although it is sealed.
	idleSince time.Time
	// missing counts host reports in a row that did not have it; missedAt is when that began.
	missing  int
	missedAt time.Time
	// rebooted tells that its host started anew without it: its bytes are gone, once nobody can begin it again.
	rebooted bool
}

// track gives the track of a partition's owner, made when it is new.
func (l *Leader) track(r *job.Record, partition int) *track {
	a, p := r.Attempt(partition), &r.Partitions[partition]
	t := l.tracks[a]
	if t == nil {
		t = &track{node: p.Node, device: p.Device}
		l.tracks[a] = t
	}
	t.running, t.endedAt, t.device = true, time.Time{}, p.Device
	t.missing, t.rebooted = 0, false
	return t
}

// endTrack notes that an attempt owns nothing any more. Its track goes when the ledger has nothing of it.
func (l *Leader) endTrack(a job.Attempt) {
	t := l.tracks[a]
	if t == nil {
		return
	}
	t.running = false
	if t.endedAt.IsZero() {
		t.endedAt, t.missing = time.Now(), 0
	}
	if b := l.books.of[t.node]; b == nil || b.entries[a] == nil && !b.freeing[a] {
		delete(l.tracks, a)
	}
}

// compare orders attempts.
func compare(a, b job.Attempt) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Fence, b.Fence))
}

// books mirrors what the ledger holds, as far as this leader knows.
type books struct {
	// up tells that the ledger answers in this leader's term.
	up bool
	// beginning tells that a call to begin is under way, beganAt is when the last one ended.
	beginning bool
	beganAt   time.Time
	call      ledger.Call
	downSince time.Time
	downCause string

	of map[job.Node]*book
}

// book is one node's.
type book struct {
	declared bool
	// compared tells that the node's report of this reign, made after the last trouble with the book, was declared: until
	// then nothing is granted, though the book may be open.
	compared       bool
	boot, instance string
	capacity       ledger.Amounts
	entries        map[job.Attempt]*entry
	assets         []ledger.Asset
	// freeing are attempts whose release was decided and has not been confirmed by the ledger: it is sent again until
	// then (B72), and a book that still has them is behind. Those in transferring go with a Transfer.
	freeing, transferring map[job.Attempt]bool
	// asked are attempts that are being reserved, with what they need; gone are those released lately, which a host report
	// on its way may still show.
	asked map[job.Attempt]scheduler.Needs
	gone  map[job.Attempt]time.Time
	// early are those of asked that the node has reported freed already.
	early map[job.Attempt]bool
	// evicting are assets that the node was asked to unload, and when.
	evicting map[string]time.Time
	// refusals counts what the ledger refused in a row, refreshAt is when the book is read for the last of them, zero for
	// not again.
	refusals  int
	refreshAt time.Time
	// reading tells that a read or a declaration is under way, again that another one is due after it.
	reading, again bool
	// declaredCount is the count of the host report that was declared last, or may not be declared any more; declaredAt
	// is when that was.
	declaredCount uint64
	declaredAt    time.Time
}

// asks tells whether an attempt is being reserved.
func (b *book) asks(a job.Attempt) bool {
	_, ok := b.asked[a]
	return ok
}

// entry is one reservation.
type entry struct {
	amounts ledger.Amounts
	assets  []ledger.AssetKey
	limbo   bool
	since   time.Time
}

func (l *Leader) book(node job.Node) *book {
	b := l.books.of[node]
	if b == nil {
		b = &book{
			entries: map[job.Attempt]*entry{}, freeing: map[job.Attempt]bool{}, transferring: map[job.Attempt]bool{},
			asked: map[job.Attempt]scheduler.Needs{}, gone: map[job.Attempt]time.Time{}, early: map[job.Attempt]bool{},
			evicting: map[string]time.Time{}, declaredCount: l.reportsBefore,
		}
		l.books.of[node] = b
	}
	return b
}

// nodeState is what the loop keeps of a node beyond its beats and its book.
type nodeState struct {
	// hostCount is the host report that was looked at last, boot its boot.
	hostCount uint64
	boot      string
	// gone tells that the scheduler was told so.
	gone bool
	// remindedAt is when it was last told again that its drain has ended, askedAt when it was last asked for a report.
	remindedAt, askedAt time.Time
	// slow are processes of which was said that they beat too seldom.
	slow []string
}

func (l *Leader) node(name job.Node) *nodeState {
	s := l.nodes[name]
	if s == nil {
		s = &nodeState{}
		l.nodes[name] = s
	}
	return s
}
