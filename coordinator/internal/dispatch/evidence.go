package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// Only a node's word frees bytes: a report that all are gone, a host report whose complete book has an attempt no more,
// or another boot of the host. Time never does.

// missingMin is how many host reports in a row must lack an attempt that owns nothing any more before its bytes count
// as gone: a worker may have been about to book it when its fence was raised.
const missingMin = 2

// takeReport takes a plain report of a worker. It runs on a goroutine of the bus.
func (l *Leader) takeReport(m bus.Message) {
	if m.Header[wire.HeaderDiagnosis] != "" {
		return // it is for an operator
	}
	var r wire.Report
	if err := wire.Decode(m.Data, &r); err != nil {
		l.log.Warn().Err(err).Str("subject", m.Subject).Msg("report not understood")
		return
	}
	if wire.Token(m.Subject, 2) != string(r.Node) {
		l.log.Warn().Str("subject", m.Subject).Str("c2.node.id", string(r.Node)).Msg("report names another node")
		return
	}
	l.inbox.post(func() { l.seeReport(&r) })
}

func (l *Leader) seeReport(r *wire.Report) {
	if r.Stage != "" {
		l.advance(r.Attempt, r.Node, stageSeen{r.Stage, r.Handoff, r.HandoffReason})
	}
	if len(r.Keeps) > 0 && r.Keeps.Check() == nil {
		l.shrink(r.Node, r.Attempt, r.Keeps)
	}
	if r.Freed {
		l.freed(r.Node, r.Attempt)
	}
}

// freed takes the word of a node that it holds nothing of an attempt any more.
func (l *Leader) freed(node job.Node, a job.Attempt) {
	b := l.book(node)
	if b.freeing[a] || b.entries[a] == nil && !b.asks(a) {
		return
	}
	if b.asks(a) {
		b.early[a] = true // its worker was faster than the outcome of its Admit
		return
	}
	b.freeing[a] = true
	l.apply(scheduler.Freed{Attempt: a, Node: node})
}

// shrink gives back bytes of an attempt that goes on with what it keeps. A report that comes again changes nothing.
func (l *Leader) shrink(node job.Node, a job.Attempt, keeps ledger.Amounts) {
	b := l.book(node)
	e := b.entries[a]
	if e == nil || b.freeing[a] {
		return
	}
	keep, gone := ledger.Amounts{}, ledger.Amounts{}
	for pool, n := range e.amounts {
		keep[pool] = min(n, keeps[pool])
		gone[pool] = n - keep[pool]
	}
	if keep, gone = keep.Clone(), gone.Clone(); len(gone) == 0 {
		return
	}
	e.amounts = keep
	if !l.books.up {
		return // the ledger hears of it with the next declaration
	}
	call := l.books.call
	l.lanes.do(laneOfNode(node), func(ctx context.Context) {
		callCtx, cancel := l.call(ctx)
		defer cancel()
		err := l.parts.Ledger.Shrink(callCtx, call, node, a, keep)
		l.inbox.post(func() {
			switch {
			case err == nil:
				l.apply(scheduler.Shrunk{Attempt: a, Node: node, Amounts: gone})
			case fault.KindOf(err) != fault.NotFound:
				l.ledgerTrouble(node, err)
			}
		})
	})
}

// seeHost compares a new host report with what the ledger has for the node.
func (l *Leader) seeHost(s *nodeState, n *rack.Node) {
	host, b := n.Host, l.book(n.Node)
	held := map[job.Attempt]bool{}
	for _, booking := range host.Report.Book {
		held[booking.Attempt] = true
		l.advance(booking.Attempt, n.Node, stageSeen{stage: booking.Stage})
	}
	restarted := s.boot != "" && s.boot != host.Boot
	s.boot = host.Boot
	if host.Report.BookComplete {
		for a := range b.entries {
			if !held[a] {
				l.absent(n.Node, a, restarted)
			} else if t := l.tracks[a]; t != nil {
				t.missing, t.rebooted = 0, false
			}
		}
		l.evicted(n, b)
	}
	if l.declarable(b, n) {
		l.readBook(n.Node)
	}
}

// absent notes that a node's book has not, or no more, an attempt that the ledger has.
func (l *Leader) absent(node job.Node, a job.Attempt, restarted bool) {
	t, now := l.tracks[a], time.Now()
	if t == nil {
		t = &track{node: node, endedAt: now}
		l.tracks[a] = t
	}
	if l.book(node).asks(a) {
		t.missing = 0
		return // about to be granted again under the same name
	}
	j, owner := l.ownsOn(a, node)
	owner = owner && j.Record.Partitions[a.Partition].Stage != job.Proved
	t.rebooted = t.rebooted || restarted
	switch {
	case owner && restarted:
		l.lose(a, fmt.Sprintf("host of node %s was started again", node))
		return // its task may come again: its bytes are free when its fence is raised
	case owner:
		t.missing = 0
		return // not started yet; or gone with its worker, which its lease shows
	case t.rebooted:
		l.freed(node, a)
		return
	}
	if t.missing++; t.missing == 1 {
		t.missedAt = now
	}
	if t.missing >= missingMin && now.Sub(t.missedAt) >= l.cfg.Heartbeat/2 && now.Sub(t.endedAt) >= l.cfg.Heartbeat/2 {
		l.freed(node, a)
	}
}

// evicted notes assets that were to go and are gone.
func (l *Leader) evicted(n *rack.Node, b *book) {
	for name, since := range b.evicting {
		present := false
		for _, a := range n.Host.Report.Assets {
			present = present || a.Name == name
		}
		if present {
			if time.Since(since) > l.cfg.Scheduler.EvictTimeout {
				delete(b.evicting, name)
				l.apply(scheduler.Evicted{Node: n.Node, Asset: name})
			}
			continue
		}
		delete(b.evicting, name)
		if !l.books.up {
			continue
		}
		call := l.books.call
		l.lanes.do(laneOfNode(n.Node), func(ctx context.Context) {
			callCtx, cancel := l.call(ctx)
			defer cancel()
			_, err := l.parts.Ledger.Evict(callCtx, call, n.Node, name)
			l.inbox.post(func() {
				if fault.KindOf(err) != fault.Conflict {
					l.ledgerTrouble(n.Node, err)
				}
				l.apply(scheduler.Evicted{Node: n.Node, Asset: name, OK: err == nil})
			})
		})
	}
}
