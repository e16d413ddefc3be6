package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Wait is how much waits for one thing.
type Wait struct {
	Reason Code
	// Pool is what is short, of waits for memory; else "".
	Pool       ledger.Pool
	Partitions int
	// Needed is what they ask for, by pool, and Missing what each lacks of Pool, added up. Both are of the place where
	// they could run soonest; nothing is known of those that can run nowhere.
	Needed  ledger.Amounts
	Missing bytesize.Bytes
}

// Waits counts what waits, by what for, and gives when the oldest job that has a partition waiting was submitted (zero
// when none has). Partitions that are treated alike are asked about once, so it costs the number of shapes, nodes and
// jobs that wait.
func (c *Core) Waits() (waits []Wait, oldest time.Time) {
	type key struct {
		reason Code
		pool   ledger.Pool
	}
	sums := map[key]*Wait{}
	sum := func(reason Code, pool ledger.Pool) *Wait {
		k := key{reason, pool}
		if sums[k] == nil {
			sums[k] = &Wait{Reason: reason, Pool: pool, Needed: ledger.Amounts{}}
		}
		return sums[k]
	}
	for _, s := range c.queue {
		p, n := s.head(), len(s.waiters)
		r := c.whyWaiting(p)
		pool := r.Pool
		if r.Code != Memory {
			pool = ""
		}
		w := sum(r.Code, pool)
		w.Partitions += n
		if r.Code == Memory {
			w.Missing += r.Missing * bytesize.Bytes(n)
		}
		if at, ok := c.nearest(p); ok && at.choice != nil {
			for of, bytes := range at.choice.needs.Amounts {
				w.Needed[of] += bytes * bytesize.Bytes(n)
			}
		}
	}
	if n := len(c.pausing); n > 0 {
		sum(Backoff, "").Partitions = n
	}
	asked := 0
	for _, r := range c.runs {
		if r.asked {
			asked++
		}
	}
	if asked > 0 {
		sum(Asked, "").Partitions = asked
	}
	for _, j := range c.withWaiters {
		if oldest.IsZero() || j.submitted.Before(oldest) {
			oldest = j.submitted
		}
	}
	for _, w := range sums {
		waits = append(waits, *w)
	}
	slices.SortFunc(waits, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Pool, b.Pool))
	})
	return waits, oldest
}

// Codes are all reasons for a wait.
func Codes() []Code {
	return []Code{
		Backoff, PausedCode, NoNode, NoParams, Unschedulable, Unavailable, Memory, Eviction, Pinned, Refusal, Slots, Turn,
		QuotaCode, Asked,
	}
}
