package redisledger

import (
	"context"
	"fmt"
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
		stamp := ledger.Stamp{Now: s.now, Run: r.run.run, Seen: max(seen, opsOf(s.count))}
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
		args := append([]any{s.count, r.run.run, decimal(after.Ops)}, encodeBook(after)...)
		answer, err := l.call(ctx, opDeclare, call, d.Node, args...)
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
	return l.grant(ctx, opTransfer, call, from, to, from.String())
}

func (l *Ledger) grant(
	ctx context.Context, op operation, call ledger.Call, from job.Attempt, r *ledger.Reservation, more ...any,
) error {
	fence := decimal(r.Attempt.Fence)
	name := r.Attempt.String()
	args := []any{name, name[:len(name)-len(fence)], fence, encodeAmounts(r.Amounts), encodeKeys(r.Keys())}
	args = append(args, more...)
	args = append(args, decimal(ledger.EntriesMax), decimal(2*ledger.AssetsMax))
	for i := range r.Assets {
		a := &r.Assets[i]
		args = append(args, a.Key().String(), string(a.Class), decimal(a.Bytes))
	}
	answer, err := l.call(ctx, op, call, r.Node, args...)
	if err != nil {
		return err
	}
	switch answer.word {
	case "ok":
		return nil
	case "refused":
		return l.refusal(answer, from, r)
	case "limbo", "missing":
		named, err := job.ParseAttempt(answer.text(0))
		switch {
		case err != nil:
			return fault.As(fault.Corrupt, fmt.Errorf("%s: %w", op, err))
		case answer.word == "limbo":
			return ledger.InLimbo(r.Node, named)
		}
		return ledger.NotBooked(r.Node, named)
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
	args := make([]any, len(all))
	for i, a := range all {
		args[i] = a.String()
	}
	r, err := l.call(ctx, opRenew, call, node, args...)
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
	r, err := l.call(ctx, opShrink, call, node, attempt.String(), encodeAmounts(keep))
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
	r, err := l.call(ctx, opRelease, call, node, attempt.String())
	if err == nil && r.word != "ok" {
		err = unexpected(opRelease, r)
	}
	return err == nil && r.text(1) == "1", err
}

// Expire implements [ledger.Ledger].
func (l *Ledger) Expire(ctx context.Context, call ledger.Call, node job.Node) ([]job.Attempt, error) {
	r, err := l.call(ctx, opExpire, call, node)
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
	r, err := l.call(ctx, opEvict, call, node, asset+"@")
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
	r, err := l.call(ctx, opForget, call, node)
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
