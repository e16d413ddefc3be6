package dispatch

import (
	"time"

	"github.com/proofrack/proofrack/shared/job"
)

// countRefusal notes whether the ledger, with a book that is open, refused what the scheduler took to fit.
func (b *book) countRefusal(out admission) {
	switch {
	case out.reserved:
		b.refusals = 0
	case !out.ofJob && !out.doubtful && !closed(out.ledgerErr):
		b.refusals++
	}
}

// refresh reads a node's book since what the scheduler knew of it was wrong. When that did not help it is read again
// after a pause, so that the scheduler does not ask at once for what is refused again.
func (l *Leader) refresh(name job.Node) {
	b := l.book(name)
	if b.refusals < 2 {
		l.readBook(name)
		return
	}
	if !b.refreshAt.IsZero() {
		return // soon
	}
	pause := l.cfg.Tick
	for i := 2; i < b.refusals && pause < l.cfg.Heartbeat; i++ {
		pause *= 2
	}
	b.refreshAt = time.Now().Add(min(pause, max(l.cfg.Heartbeat, l.cfg.Tick)))
}

// refreshDue reads books whose pause is over.
func (l *Leader) refreshDue(now time.Time) {
	for name, b := range l.books.of {
		if !b.refreshAt.IsZero() && !now.Before(b.refreshAt) {
			l.readBook(name)
		}
	}
}
