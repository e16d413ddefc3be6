package redisledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/ledgertest"
)

// input is an operation of a history: what a client asked for, or what happened to the store.
type input struct {
	name    string
	attempt job.Attempt
	others  []job.Attempt
	reserve ledger.Reservation
	keep    ledger.Amounts
	declare ledger.Declaration
	by      time.Duration
}

// output is its answer as text. An unknown one may have happened at any time after it was asked for, or never.
type output struct {
	text    string
	unknown bool
}

// state is the specification: the machine of package ledger, with the store's clock and life.
type state struct {
	machine *ledger.Machine
	now     time.Time
	life    int
	key     string
}

func newState() state {
	m, err := ledger.NewMachine(ledger.Config{Lease: ledgertest.Lease})
	if err != nil {
		panic(err)
	}
	if _, err := m.Begin(1, "e1"); err != nil {
		panic(err)
	}
	return state{machine: m, now: ledgertest.Start()}.named()
}

// named adds the text by which states are compared.
func (s state) named() state {
	book, err := s.machine.Node(ledger.Stamp{Now: s.now, Run: fmt.Sprint(s.life)}, node)
	text, _ := json.Marshal(book)
	s.key = fmt.Sprint(s.now.UnixMilli(), s.life, err, string(text))
	return s
}

// step gives the state after an operation and the operation's answer.
func (s state) step(in *input) (state, string) {
	next := state{machine: s.machine.Clone(), now: s.now, life: s.life}
	switch in.name {
	case "advance":
		next.now = next.now.Add(in.by)
		return next.named(), "ok"
	case "restart":
		next.life++
		return next.named(), "ok"
	}
	text := perform(specification{next}, in)
	return next.named(), text
}

// operations are those of the port that are checked.
type operations interface {
	Declare(d *ledger.Declaration) (*ledger.Drift, error)
	Reserve(r *ledger.Reservation) error
	Transfer(from job.Attempt, to *ledger.Reservation) error
	Renew(attempts []job.Attempt) ([]job.Attempt, error)
	Shrink(a job.Attempt, keep ledger.Amounts) error
	Release(a job.Attempt) (bool, error)
	Expire() ([]job.Attempt, error)
	Evict(asset string) (bool, error)
	Node() (*ledger.NodeBook, error)
}

var linearCall = ledger.Call{Term: 1, Epoch: "e1"}

// perform carries an operation out and gives its answer; see output.
func perform(on operations, in *input) string {
	answer := func(value any, err error) string {
		if err != nil {
			var refusal *ledger.Refusal
			kind := fault.KindOf(err)
			if (kind == fault.Transient || kind == fault.Cancelled) && !errors.As(err, &refusal) {
				return unknownOutcome
			}
			return fmt.Sprintf("%s: %v", kind, err)
		}
		return fmt.Sprintf("%+v", value)
	}
	switch in.name {
	case "declare":
		drift, err := on.Declare(&in.declare)
		if err != nil {
			return answer(nil, err)
		}
		return answer(*drift, nil)
	case "reserve":
		return answer("ok", on.Reserve(&in.reserve))
	case "transfer":
		return answer("ok", on.Transfer(in.attempt, &in.reserve))
	case "renew":
		return answer(on.Renew(in.others))
	case "shrink":
		return answer("ok", on.Shrink(in.attempt, in.keep))
	case "release":
		return answer(on.Release(in.attempt))
	case "expire":
		return answer(on.Expire())
	case "evict":
		return answer(on.Evict("srs:x"))
	}
	book, err := on.Node()
	if err != nil {
		return answer(nil, err)
	}
	seen := *book
	seen.Run, seen.Now = "", time.Time{}
	for _, a := range []*ledger.Amounts{&seen.Capacity, &seen.Used} {
		if *a == nil {
			*a = ledger.Amounts{}
		}
	}
	text, err := json.Marshal(seen)
	return answer(string(text), err)
}

const unknownOutcome = "unknown"

// specification gives the machine the shape of operations.
type specification struct{ state }

func (s specification) stamp() ledger.Stamp {
	return ledger.Stamp{Now: s.now, Run: fmt.Sprint(s.life)}
}

func (s specification) Declare(d *ledger.Declaration) (*ledger.Drift, error) {
	return s.machine.Declare(s.stamp(), linearCall, d)
}

func (s specification) Reserve(r *ledger.Reservation) error {
	return s.machine.Reserve(s.stamp(), linearCall, r)
}

func (s specification) Transfer(from job.Attempt, to *ledger.Reservation) error {
	return s.machine.Transfer(s.stamp(), linearCall, from, to)
}

func (s specification) Renew(attempts []job.Attempt) ([]job.Attempt, error) {
	return s.machine.Renew(s.stamp(), linearCall, node, attempts)
}

func (s specification) Shrink(a job.Attempt, keep ledger.Amounts) error {
	return s.machine.Shrink(s.stamp(), linearCall, node, a, keep)
}

func (s specification) Release(a job.Attempt) (bool, error) {
	return s.machine.Release(s.stamp(), linearCall, node, a)
}

func (s specification) Expire() ([]job.Attempt, error) {
	return s.machine.Expire(s.stamp(), linearCall, node)
}

func (s specification) Evict(asset string) (bool, error) {
	return s.machine.Evict(s.stamp(), linearCall, node, asset)
}

func (s specification) Node() (*ledger.NodeBook, error) { return s.machine.Node(s.stamp(), node) }

// real gives a ledger that shape.
type real struct {
	ctx context.Context
	l   ledger.Ledger
}

func (r real) Declare(d *ledger.Declaration) (*ledger.Drift, error) {
	return r.l.Declare(r.ctx, linearCall, d)
}
func (r real) Reserve(v *ledger.Reservation) error { return r.l.Reserve(r.ctx, linearCall, v) }
func (r real) Transfer(from job.Attempt, to *ledger.Reservation) error {
	return r.l.Transfer(r.ctx, linearCall, from, to)
}
func (r real) Renew(attempts []job.Attempt) ([]job.Attempt, error) {
	return r.l.Renew(r.ctx, linearCall, node, attempts)
}
func (r real) Shrink(a job.Attempt, keep ledger.Amounts) error {
	return r.l.Shrink(r.ctx, linearCall, node, a, keep)
}
func (r real) Release(a job.Attempt) (bool, error) { return r.l.Release(r.ctx, linearCall, node, a) }
func (r real) Expire() ([]job.Attempt, error)      { return r.l.Expire(r.ctx, linearCall, node) }
func (r real) Evict(asset string) (bool, error)    { return r.l.Evict(r.ctx, linearCall, node, asset) }
func (r real) Node() (*ledger.NodeBook, error)     { return r.l.Node(r.ctx, node) }

// model is the specification as porcupine takes it.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return newState() },
		Step: func(before, in, out any) (bool, any) {
			after, text := before.(state).step(in.(*input))
			got := out.(output)
			return got.unknown || got.text == text, after
		},
		Equal: func(a, b any) bool { return a.(state).key == b.(state).key },
	}
}
