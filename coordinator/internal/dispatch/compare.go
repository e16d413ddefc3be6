package dispatch

import (
	"context"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/reconcile"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// compareAll compares what record, ledger, node and beats say of each attempt, and repairs what has differed for long
// enough that no copy is merely behind.
func (l *Leader) compareAll(now time.Time) {
	nodes := map[job.Node]*seenNode{}
	for a, t := range l.tracks {
		n := nodes[t.node]
		if n == nil {
			n = l.lookAtNode(t.node)
			nodes[t.node] = n
		}
		repair := reconcile.Judge(l.facts(a, t, n, now))
		if repair != t.repair {
			t.repair, t.repairSince = repair, now
		}
		if repair == reconcile.None {
			l.lookAtSealed(a, t, n, now)
			continue
		}
		if now.Sub(t.repairSince) >= l.patience(repair, t) {
			l.repair(a, t, n, repair)
			t.repairSince = now
		}
	}
}

// seenNode is a node as one comparison sees it.
type seenNode struct {
	node rack.Node
	gone bool
	held map[job.Attempt]bool
	live map[job.Attempt]rack.Live
}

func (l *Leader) lookAtNode(name job.Node) *seenNode {
	n, ok := l.parts.Nodes.Node(name)
	s := &seenNode{node: n, gone: !ok, held: map[job.Attempt]bool{}, live: l.parts.Nodes.LiveOn(name)}
	if n.Host != nil {
		for _, booking := range n.Host.Report.Book {
			s.held[booking.Attempt] = true
		}
	}
	return s
}

func (l *Leader) facts(a job.Attempt, t *track, n *seenNode, now time.Time) reconcile.Facts {
	b := l.book(t.node)
	j, owner := l.owns(a)
	f := reconcile.Facts{
		Owner: owner, Granted: b.entries[a] != nil, BookOpen: b.declared, NodeGone: n.gone, Held: n.held[a],
		Complete: n.node.Host != nil && n.node.Host.Report.BookComplete,
		UnderWay: t.underWay || b.asks(a) || b.freeing[a] || b.reading || !l.books.up || l.job(a.Job).busy > 0,
	}
	if live, ok := n.live[a]; ok {
		f.Live = now.Sub(live.SeenAt) <= 2*l.cfg.Heartbeat
	}
	if owner {
		f.Stage = j.Record.Partitions[a.Partition].Stage
		f.Overdue = f.Stage == job.Proved && now.After(l.holdUntil) && l.overdue(t, now)
	}
	return f
}

// patience is how long truths may differ before a repair.
func (l *Leader) patience(r reconcile.Repair, t *track) time.Duration {
	switch r {
	case reconcile.Publish:
		if t.unpublished {
			return 0
		}
		return 2 * l.cfg.Heartbeat
	case reconcile.Declare:
		return l.cfg.Heartbeat
	case reconcile.HandBack, reconcile.Lose, reconcile.Cancel:
		return l.cfg.Lease
	case reconcile.None, reconcile.Release:
	}
	return 2 * l.cfg.Heartbeat
}

func (l *Leader) repair(a job.Attempt, t *track, n *seenNode, r reconcile.Repair) {
	switch r {
	case reconcile.Publish:
		l.publishMissing(a, t, n)
	case reconcile.HandBack:
		l.takeBack(a, "the ledger has no reservation for it and its node has not begun it")
	case reconcile.Lose:
		l.lose(a, "neither ledger nor node knows it any more")
	case reconcile.Cancel:
		l.sendCancel(t.node, a, "its fence was raised")
	case reconcile.Declare:
		l.readBook(t.node)
	case reconcile.Release, reconcile.None:
		// Host reports release (see absent): they count how often it was missing.
	}
}

// publishMissing publishes a task again that no worker has: with the same id, so that the stream takes it only if it is
// gone (B48). A task that the stream says it had, and that nobody takes although there are free hands, is given up for
// a new attempt, which has a new id (B57); so is one whose node takes no tasks any more, since it drains or stops.
func (l *Leader) publishMissing(a job.Attempt, t *track, n *seenNode) {
	j, ok := l.owns(a)
	if !ok {
		return
	}
	workers, slots, free := hands(n)
	switch {
	case workers > 0 && slots == 0: // without any, its lease ends: they may have died of it
		l.takeBack(a, "no synthesis worker of its node takes tasks")
		return
	case !free && !t.unpublished:
		return // it may well wait its turn
	case free && t.duplicates > duplicatesMax:
		l.takeBack(a, "its task is gone from the queue")
		return
	}
	t.underWay = true
	r, amounts := j.Record, t.amounts
	l.lanes.do(laneOfNode(t.node), func(ctx context.Context) {
		duplicate, err := l.publishAgain(ctx, r, a, amounts)
		l.inbox.post(func() {
			t.underWay = false
			switch {
			case err != nil:
				l.log.Warn().Err(err).Msg("task not published again")
				return
			case duplicate:
				t.duplicates++
			default:
				l.log.Info().Str("attempt", a.String()).Msg("task published again")
			}
			t.unpublished = false
		})
	})
}

// duplicatesMax is how often a stream may say that it had a task that nobody takes.
const duplicatesMax = 2

// hands counts a node's synthesis workers and the slots of those that take tasks, and tells whether one of these is
// free.
func hands(n *seenNode) (workers, slots int, free bool) {
	running := 0
	for _, p := range n.node.Processes {
		if p.Beat.Role != wire.RoleSynth {
			continue
		}
		workers++
		if p.Beat.State == wire.StateReady {
			slots += p.Beat.Slots
			running += len(p.Beat.Running)
		}
	}
	return workers, slots, running < slots
}

// lookAtSealed gives up a sealed segment that its device does not take for two leases although it has nothing else to
// do.
func (l *Leader) lookAtSealed(a job.Attempt, t *track, n *seenNode, now time.Time) {
	j, ok := l.owns(a)
	if !ok || j.Record.Partitions[a.Partition].Stage != job.Sealed || n.gone {
		t.idleSince = time.Time{}
		return
	}
	for other, live := range n.live {
		o := l.tracks[other]
		if live.Role == wire.RoleGPU && now.Sub(live.SeenAt) < 2*l.cfg.Heartbeat && (o == nil || o.device == t.device) {
			t.idleSince = time.Time{}
			return
		}
	}
	switch {
	case t.idleSince.IsZero():
		t.idleSince = now
	case now.Sub(t.idleSince) > 2*l.cfg.Lease:
		l.takeBack(a, "its segment was never taken by the device")
	}
}

// takeBack puts an attempt's partition back to wait at no cost.
func (l *Leader) takeBack(a job.Attempt, reason string) {
	mine := false
	l.change(a.Job, "hand back", func(r *job.Record) error {
		if mine = owns(r, a); !mine {
			return store.ErrUnchanged
		}
		return r.HandBack(a, reason, 0, time.Now().UTC())
	}, func(j store.Job, err error) {
		if err == nil && l.tookAway(j.Record, a, job.OutcomeHandedBack, reason, mine) {
			l.log.Warn().Str("attempt", a.String()).Str("reason", reason).Msg("attempt was handed back")
		}
	})
}
