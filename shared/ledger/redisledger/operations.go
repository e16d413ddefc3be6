package redisledger

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Declare implements [ledger.Ledger]. The new book is made here, from the old one and the report, and put in place by
// one script unless the old one changed meanwhile; then it is made again.
func (l *Ledger) Declare(ctx context.Context, call ledger.Call, d *ledger.Declaration) (*ledger.Drift, error) {
	if err := checkNode(call, d.Node); err != nil {
		return nil, err
	}
	nodes := l.cfg.Prefix + ":nodes"
	for range rounds {
		r, s, err := l.read(ctx, d.Node)
		if err != nil {
			return nil, err
		}
		seen := l.seenOps(d.Node)
		before, err := s.book(d.Node, r.run.run, seen)
		if err != nil {
			before = nil // unreadable: the node's word is all there is
		}
		stamp := ledger.Stamp{Now: s.clock, Run: r.run.run, Seen: max(seen, opsOf(s.count))}
		if before != nil {
			stamp.Seen = seen
		}
		after, drift, err := ledger.Declared(l.cfg.Ledger.Lease, stamp, call, before, d)
		if err != nil || drift.Stale {
			return drift, err
		}
		add, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
		err = l.rdb.SAdd(add, nodes, string(d.Node)).Err()
		cancel()
		if err != nil {
			return nil, l.classify("declare", err)
		}
		args := append([]any{decimal(call.Term), s.count, r.run.run, decimal(after.Ops)}, encodeBook(after)...)
		answer, err := l.answer(ctx, opDeclare, call, d.Node, args)
		switch {
		case err != nil:
			return nil, err
		case answer.word == "ok":
			return drift, nil
		case answer.word != "changed":
			return nil, unexpected(opDeclare, answer)
		}
	}
	return nil, fault.New(fault.Transient, "declare %s: the book changed %d times meanwhile", d.Node, rounds)
}

// opsOf reads the count of operations in front of a count field, 0 when there is none.
func opsOf(text string) uint64 {
	text, _, _ = strings.Cut(text, "|")
	n, err := strconv.ParseUint(text, 10, 53)
	if err != nil {
		return 0
	}
	return n
}

// Reserve implements [ledger.Ledger].
func (l *Ledger) Reserve(ctx context.Context, call ledger.Call, r *ledger.Reservation) error {
	if err := r.Check(); err != nil {
		return err
	}
	return l.grant(ctx, opReserve, call, job.Attempt{}, r)
}

// Transfer implements [ledger.Ledger].
func (l *Ledger) Transfer(ctx context.Context, call ledger.Call, from job.Attempt, to *ledger.Reservation) error {
	if err := to.Check(); err != nil {
		return err
	}
	if err := ledger.CheckAttempt(from); err != nil {
		return err
	}
	return l.grant(ctx, opTransfer, call, from, to)
}

// grant runs a script with the arguments that scripts/grant.lua lists.
func (l *Ledger) grant(
	ctx context.Context, op operation, call ledger.Call, from job.Attempt, r *ledger.Reservation,
) error {
	fields := []string{fieldOfPartition(r.Attempt)}
	if op == opTransfer {
		fields = append(fields, fieldOfPartition(from))
	}
	pools := poolsOf(r)
	own := []any{
		decimal(r.Attempt.Fence), encodeAmounts(r.Amounts), encodeKeys(r.Keys()),
		decimal(ledger.EntriesMax), decimal(2 * ledger.AssetsMax), decimal(len(pools)),
	}
	for _, pool := range pools {
		spare := ledger.AssetKey{Name: ledger.AssetSegments, Pool: pool}
		fields = append(fields, "cap:"+string(pool), "used:"+string(pool), fieldOfAsset(spare))
		own = append(own, string(pool), decimal(r.Amounts[pool]))
	}
	for i := range r.Assets {
		a := &r.Assets[i]
		field := fieldOfAsset(a.Key())
		fields = append(fields, field)
		own = append(own, field, string(a.Pool), string(a.Class), decimal(a.Bytes))
	}
	if op == opTransfer {
		own = append(own, decimal(from.Fence))
	}
	answer, err := l.call(ctx, op, call, r.Node, fields, own...)
	if err != nil {
		return err
	}
	switch answer.word {
	case "ok":
		return nil
	case "refused":
		return l.refusal(answer, from, r)
	case "limbo":
		return ledger.InLimbo(r.Node, r.Attempt)
	case "giver":
		return ledger.InLimbo(r.Node, from)
	case "missing":
		return ledger.NotBooked(r.Node, from)
	case "fenced":
		return ledger.FencedOut(r.Node, r.Attempt)
	case "full":
		return ledger.BookFull(r.Node)
	case "other":
		return ledger.OtherBooked(r.Node, r.Attempt)
	case "both":
		return ledger.BothBooked(from, r.Attempt)
	}
	return unexpected(op, answer)
}

// poolsOf are those that a reservation takes bytes of, or has assets in.
func poolsOf(r *ledger.Reservation) []ledger.Pool {
	pools := r.Amounts.Pools()
	for i := range r.Assets {
		if !slices.Contains(pools, r.Assets[i].Pool) {
			pools = append(pools, r.Assets[i].Pool)
		}
	}
	return pools
}

// refusal finds the numbers and holders in the book as the script saw it.
func (l *Ledger) refusal(answer reply, from job.Attempt, r *ledger.Reservation) error {
	if len(answer.rest) != 1 {
		return unexpected("refusal", answer)
	}
	s, err := readDump(r.Node, answer.rest[0])
	if err != nil {
		return err
	}
	b, err := s.book(r.Node, answer.run.run, 0)
	if err != nil {
		return err
	}
	if b != nil {
		if refusal := b.NewRefusal(r, from); refusal != nil {
			return refusal
		}
	}
	return fault.New(fault.Corrupt, "node %s: reserve %s: refused although it fits the book", r.Node, r.Attempt)
}

// Renew implements [ledger.Ledger].
func (l *Ledger) Renew(
	ctx context.Context, call ledger.Call, node job.Node, all []job.Attempt,
) ([]job.Attempt, error) {
	if err := ledger.CheckRenew(all); err != nil {
		return nil, err
	}
	own := make([]any, 0, 3*len(all))
	for _, a := range all {
		own = append(own, a.String(), fieldOfPartition(a), decimal(a.Fence))
	}
	r, err := l.call(ctx, opRenew, call, node, nil, own...)
	if err != nil {
		return nil, err
	}
	if r.word != "ok" || len(r.rest) != 2 {
		return nil, unexpected(opRenew, r)
	}
	return attempts(r.rest[1])
}

// Shrink implements [ledger.Ledger].
func (l *Ledger) Shrink(
	ctx context.Context, call ledger.Call, node job.Node, attempt job.Attempt, keep ledger.Amounts,
) error {
	if err := keep.Check(); err != nil {
		return err
	}
	fields := []string{fieldOfPartition(attempt)}
	r, err := l.call(ctx, opShrink, call, node, fields, decimal(attempt.Fence), encodeAmounts(keep))
	switch {
	case err != nil:
		return err
	case r.word == "missing":
		return ledger.NotBooked(node, attempt)
	case r.word != "ok":
		return unexpected(opShrink, r)
	}
	return nil
}

// Release implements [ledger.Ledger].
func (l *Ledger) Release(ctx context.Context, call ledger.Call, node job.Node, attempt job.Attempt) (bool, error) {
	r, err := l.call(ctx, opRelease, call, node, []string{fieldOfPartition(attempt)}, decimal(attempt.Fence))
	if err == nil && r.word != "ok" {
		err = unexpected(opRelease, r)
	}
	return err == nil && r.text(1) == "1", err
}

// Expire implements [ledger.Ledger].
func (l *Ledger) Expire(ctx context.Context, call ledger.Call, node job.Node) ([]job.Attempt, error) {
	r, err := l.call(ctx, opExpire, call, node, nil)
	if err != nil {
		return nil, err
	}
	if r.word != "ok" || len(r.rest) != 2 {
		return nil, unexpected(opExpire, r)
	}
	limbo, err := attempts(r.rest[1])
	slices.SortFunc(limbo, compareAttempts)
	return limbo, err
}

// Evict implements [ledger.Ledger].
func (l *Ledger) Evict(ctx context.Context, call ledger.Call, node job.Node, asset string) (bool, error) {
	r, err := l.call(ctx, opEvict, call, node, nil, "a:"+asset+"@")
	switch {
	case err != nil:
		return false, err
	case r.word == "users":
		return false, ledger.InUse(node, asset, int(opsOf(r.text(0))))
	case r.word != "ok":
		return false, unexpected(opEvict, r)
	}
	return r.text(1) == "1", nil
}

// Forget implements [ledger.Ledger].
func (l *Ledger) Forget(ctx context.Context, call ledger.Call, node job.Node) error {
	if err := checkNode(call, node); err != nil {
		return err
	}
	r, err := l.answer(ctx, opForget, call, node, []any{decimal(call.Term)})
	switch {
	case err != nil:
		return err
	case r.word == "booked":
		return ledger.StillBooked(node, int(opsOf(r.text(0))))
	case r.word != "ok":
		return unexpected(opForget, r)
	}
	l.mu.Lock()
	delete(l.seen, node)
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	return l.classify("forget", l.rdb.SRem(ctx, l.cfg.Prefix+":nodes", string(node)).Err())
}
