package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/lead"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// The watchers. They read servers directly, without lines.

func (w *world) decode(data []byte) *job.Record {
	r := &job.Record{}
	if err := json.Unmarshal(data, r); err != nil {
		w.fail("record is unreadable: %v", err)
	}
	return r
}

// seeRecord looks at each revision of each record, in order.
func (w *world) seeRecord(e bus.Entry) {
	id := job.ID(strings.TrimPrefix(e.Key, wire.JobKeyPrefix))
	w.mu.Lock()
	old := w.records[id]
	accepted, cancelled := w.accepted[id], w.cancelled[id]
	w.mu.Unlock()
	if e.Deleted {
		if accepted {
			w.fail("invariant 3: the record of accepted job %s was deleted", id)
		}
		w.mu.Lock()
		delete(w.records, id)
		w.mu.Unlock()
		return
	}
	r := w.decode(e.Value)
	if old != nil {
		w.compareRecords(old, r)
	}
	if r.State == job.Done {
		w.seeDone(r)
	}
	if cancelled && r.State.Ended() && r.State != job.Cancelled {
		w.fail("invariant 3: the leader said that job %s is being cancelled, and it is %s", id, r.State)
	}
	if r.State == job.Failed && (r.Fault == nil || r.Fault.Message == "") {
		w.fail("invariant 3: job %s failed without a reason", id)
	}
	w.mu.Lock()
	w.records[id] = r
	w.mu.Unlock()
}

func (w *world) compareRecords(old, r *job.Record) {
	if old.State.Ended() && r.State != old.State {
		w.fail("invariant 3: job %s ended as %s and is %s now", r.ID, old.State, r.State)
	}
	for i := range r.Partitions {
		was, is := &old.Partitions[i], &r.Partitions[i]
		name := fmt.Sprintf("partition %d of job %s", i, r.ID)
		if is.Fence < was.Fence {
			w.fail("fences only rise: %s went from %d to %d", name, was.Fence, is.Fence)
		}
		if was.Stage == job.Verified {
			if is.Stage != job.Verified || is.Fence != was.Fence || !bytes.Equal(is.Proof, was.Proof) {
				w.fail("invariant 6: %s was finished with fence %d, and is %s with fence %d", name, was.Fence, is.Stage,
					is.Fence)
			}
			continue
		}
		w.seeAttemptEnd(name, was, is)
		if is.Stage != job.Verified {
			continue
		}
		a := r.Attempt(i)
		if was.Fence != is.Fence || !was.Stage.Running() || old.State != job.Active {
			w.fail("invariant 5: %s was %s with fence %d in a job that was %s, and attempt %s was accepted",
				name, was.Stage, was.Fence, old.State, a)
		}
		if !bytes.Equal(is.Proof, w.made.proofs[is.Slice.SHA256]) {
			w.fail("invariant 4: %s was finished by attempt %s with a proof that is not its own", name, a)
		}
		w.mu.Lock()
		published := w.results[a]
		w.mu.Unlock()
		if !published {
			w.fail("invariant 5: %s was finished by attempt %s, which published no proof", name, a)
		}
	}
}

// seeAttemptEnd looks whether an attempt that brought no proof was counted, and whether there are more than may be.
func (w *world) seeAttemptEnd(name string, was, is *job.Partition) {
	last := is.Last()
	if !was.Stage.Running() || is.Stage.Running() || last == nil || last.Fence != was.Fence {
		return
	}
	failed, lost := was.FailedCount, was.LostCount
	switch last.Outcome {
	case job.OutcomeFailed:
		failed++
	case job.OutcomeLost:
		lost++
	case job.OutcomeOK, job.OutcomeHandedBack, job.OutcomeCancelled:
	}
	if is.FailedCount != failed || is.LostCount != lost {
		w.fail("attempts are bounded: %s ended as %s, and has %d failed and %d lost attempts, not %d and %d", name,
			last.Outcome, is.FailedCount, is.LostCount, failed, lost)
	}
	policy := job.DefaultPolicy()
	if is.Stage == job.Waiting && (failed >= policy.FailedMax || lost >= policy.LostMax) {
		w.fail("attempts are bounded: %s waits again after %d failed and %d lost attempts", name, failed, lost)
	}
}

// fencedOut tells whether an attempt can own its partition no more, as far as the watchers know.
func (w *world) fencedOut(a job.Attempt) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.records[a.Job]
	return r != nil && (r.State != job.Active || r.Partitions[a.Partition].Fence > a.Fence)
}

// leads notes that an instance leads until a context ends. Nobody else may by then, but where it is stopped: it knows
// so soon after it goes on.
func (w *world) leads(c *instance, ctx context.Context) { //nolint:revive // it is about the context
	w.mu.Lock()
	other, until := w.leader, w.leaderUntil
	w.leader, w.leaderUntil = c, ctx
	w.mu.Unlock()
	if until == nil || until.Err() != nil {
		return
	}
	if !other.link.isPaused() && time.Since(other.wokeAt) > wakesWithin {
		w.fail("one leads at a time: %s began while %s led", c.name, other.name)
		return
	}
	w.clients.Go(func() {
		for until.Err() == nil && other.link.isPaused() && !other.link.isDead() {
			time.Sleep(time.Second / 10)
		}
		time.Sleep(wakesWithin)
		if until.Err() == nil {
			w.fail("one leads at a time: %s leads, and %s still does %s after it was stopped", c.name, other.name, wakesWithin)
		}
	})
}

// wakesWithin is how soon a leader that was stopped for longer than its lease has asked whether it still leads.
const wakesWithin = 2 * lead.LeaseDefault

func (w *world) seeDone(r *job.Record) {
	if r.Result == nil || r.VerifiedCount() != len(r.Partitions) {
		w.fail("invariant 4: job %s is done with %d of %d partitions", r.ID, r.VerifiedCount(), len(r.Partitions))
	}
}

// seeBook looks at a node's book when it may have changed. The books' lock is held.
func (w *world) seeBook(node job.Node, declared bool) {
	b := w.book(node)
	if b == nil {
		return
	}
	if pools := b.Mismatch(); len(pools) > 0 {
		w.fail("invariant 1: book of %s: use of pools %v is not the sum of what is booked", node, pools)
	}
	w.seeOver(b, w.books.last[node], declared)
	if last := w.books.last[node]; last != nil {
		for i := range last.Entries {
			was := &last.Entries[i]
			if is := b.Entry(was.Attempt); was.Limbo && is != nil && !is.Limbo {
				w.fail("invariant 5: %s was fenced out on node %s, and is live again", was.Attempt, node)
			}
		}
	}
	w.books.last[node] = b
}

// seeExpired looks at a book whose leases have just been looked through.
func (w *world) seeExpired(b *ledger.NodeBook) {
	for i := range b.Entries {
		if e := &b.Entries[i]; !e.Limbo && !e.LeaseUntil.After(b.WrittenAt) {
			w.fail("leases end: that of %s on node %s was until %s, and it is live at %s", e.Attempt, b.Node,
				e.LeaseUntil.Format(time.TimeOnly), b.WrittenAt.Format(time.TimeOnly))
		}
	}
}

// seeHeld looks at a host's own book when it has grown. The host's lock is held.
func (w *world) seeHeld(h *host) {
	used := ledger.Amounts{}
	for _, b := range h.book {
		for pool, n := range b.amounts {
			used[pool] += n
		}
	}
	for pool, n := range used {
		if n > h.capacity()[pool] {
			w.fail("invariant 1: host %s holds %s of %s in pool %s", h.name, n, h.capacity()[pool], pool)
		}
	}
}

// seeGrant looks at the very moment of a grant, which is what invariant 1 promises: what the ledger has booked, what
// the
// host holds, and what may still begin on it, each attempt counted once, is never more than the host has. Neither a
// ledger that forgot or went back, nor one that took an early word for gone bytes, passes.
func (w *world) seeGrant(h *host, b *ledger.NodeBook, granted job.Attempt) {
	all := map[job.Attempt]ledger.Amounts{}
	count := func(a job.Attempt, amounts ledger.Amounts) {
		if all[a] == nil {
			all[a] = ledger.Amounts{}
		}
		for pool, n := range amounts {
			all[a][pool] = max(all[a][pool], n)
		}
	}
	for i := range b.Entries {
		count(b.Entries[i].Attempt, b.Entries[i].Amounts)
	}
	h.mu.Lock()
	settled := maps.Clone(h.ended)
	for a, held := range h.book {
		count(a, held.amounts)
		settled[a] = true
	}
	h.mu.Unlock()
	w.mu.Lock()
	for _, r := range w.records {
		for i := range r.Partitions {
			p, a := &r.Partitions[i], r.Attempt(i)
			if r.State == job.Active && p.Stage.Running() && p.Node == h.name && !settled[a] {
				count(a, ledger.Amounts{ // its task is out, or may come again
					ledger.PoolRAM: segmentBytes + scratchBytes, ledger.PoolSHM: segmentBytes,
				})
			}
		}
	}
	lostAt, declaredOf := w.lostAt[h.name], w.declaredOf[h.name]
	w.mu.Unlock()
	sum := ledger.Amounts{}
	for _, amounts := range all {
		for pool, n := range amounts {
			sum[pool] += n
		}
	}
	for i := range b.Assets {
		sum[b.Assets[i].Pool] += b.Assets[i].Bytes
	}
	for pool, n := range sum {
		if n > h.capacity()[pool] {
			w.fail("invariant 1: with %s node %s has given away %s of %s in pool %s: %s; ledger: %s", granted, h.name,
				n,
				h.capacity()[pool], pool, inWords(slices.SortedFunc(maps.Keys(all), byAttempt)), inWords(b))
			return
		}
	}
	if declaredOf.Before(lostAt.Add(-lateMax)) {
		w.fail(
			"barrier: %s was granted on node %s, whose book was lost at %.1fs and whose report of %.1fs was declared last",
			granted,
			h.name,
			lostAt.Sub(w.began).Seconds(),
			declaredOf.Sub(w.began).Seconds(),
		)
	}
}

// overWithin is how long a book may be over its capacity once all was healed: until the node has declared what
// it holds by now, and the leases of what it does not hold have ended.
const overWithin = 3 * time.Minute

// seeOver looks at a book that is over its capacity. Only a declaration may make it so, since it books what the node
// says that it holds, beside what was granted: a ledger that went back has what was released since, and a report that
// was under way for long shows what is gone. By design section 4 nothing frees those bytes but the node's
// evidence; until that comes the book counts too much, never too little. That nothing is granted meanwhile, seeGrant
// sees, and here that nothing else adds to it.
func (w *world) seeOver(b, last *ledger.NodeBook, declared bool) {
	pools := b.Over()
	for _, pool := range pools {
		if !declared && last != nil && b.Used[pool] > last.Used[pool] {
			w.fail("invariant 1: book of %s, over its capacity in %s, has grown by no declaration: %s", b.Node, pool,
				inWords(b))
		}
	}
	since, was := w.books.over[b.Node]
	switch {
	case len(pools) == 0:
		delete(w.books.over, b.Node)
	case !was:
		w.books.over[b.Node] = time.Now()
		if !declared {
			w.fail("invariant 1: book of %s was brought over its capacity in %v, by no declaration: %s", b.Node, pools,
				inWords(b))
		}
	case !w.healedAt.IsZero() && time.Since(later(since, w.healedAt)) > overWithin:
		w.fail("invariant 1: book of %s is over its capacity in %v for %s: %s", b.Node, pools, overWithin, inWords(b))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func inWords(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

// left tells what is left of jobs that have ended, "" for nothing (invariants 2 and 9).
func (w *world) left(ctx context.Context) string {
	l, text := w.ledger.Open(), ""
	for _, h := range w.hosts {
		if b, err := l.Node(ctx, h.name); err != nil {
			text += fmt.Sprintf("book of %s: %v\n", h.name, err)
		} else if len(b.Entries) > 0 {
			text += fmt.Sprintf("ledger of %s: %s\n", h.name, inWords(b.Entries))
		}
		h.mu.Lock()
		for a, b := range h.book {
			text += fmt.Sprintf("host %s holds %s (%s)\n", h.name, a, b.stage)
		}
		h.mu.Unlock()
	}
	for _, stream := range []string{wire.StreamSynth, wire.StreamProve, wire.StreamResult} {
		log, err := w.bus.Log(ctx, stream)
		if err != nil {
			return err.Error()
		}
		if state, err := log.State(ctx); err != nil || state.Messages > 0 {
			next, _ := log.Next(ctx, ">", 1)
			text += fmt.Sprintf("stream %s has %d messages, the first is %s of %s\n", stream, state.Messages, next.ID,
				next.At.Format(time.TimeOnly))
		}
	}
	return text
}

// open are accepted jobs that have not ended.
func (w *world) open() (out []*job.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.accepted {
		if r := w.records[id]; r == nil || !r.State.Ended() {
			if r == nil {
				r = &job.Record{ID: id}
			}
			out = append(out, r)
		}
	}
	return out
}

// unended is "" when all accepted jobs have ended.
func (w *world) unended() string {
	if len(w.open()) > 0 {
		return "jobs have not ended"
	}
	return ""
}

// why is what the leader says about a job that waits.
func (w *world) why(ctx context.Context, id job.ID) string {
	l, _, err := w.leading()
	if err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := l.Why(ctx, id)
	return fmt.Sprintf("why: %s %v\n", inWords(reply), err)
}

// total counts what came of the run.
func (w *world) total() *counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.counts
	c.Seeds, c.StepsMin, c.Virtual = 1, c.steps(), time.Since(w.began).Seconds()
	for id := range w.accepted {
		if r := w.records[id]; r != nil && r.State.Ended() {
			c.Jobs[r.State]++
		}
	}
	return c
}

// summary counts what came of the jobs.
func (w *world) summary() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	states, attempts, late := map[job.State]int{}, uint64(0), 0
	for _, r := range w.records {
		states[r.State]++
		late += r.LateCount
		for i := range r.Partitions {
			attempts += r.Partitions[i].Fence
		}
	}
	return fmt.Sprintf("%d accepted, %v, fences up to %d in all, %d late results, %d steps in %.0fs, history %x",
		len(w.accepted), states,
		attempts, late, w.counts.steps(), time.Since(w.began).Seconds(), w.counts.history)
}
