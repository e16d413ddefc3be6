package synth

import (
	"context"
	"errors"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// rebook moves the segment's bytes in the book from memory to disk, before any is allocated there.
func (m *making) rebook(ctx context.Context, kind handoff.Kind) error {
	memory := m.spill.FileBytes(handoff.SHM, m.BodyBytes(m.layout))
	now := m.held.Booking().Amounts
	part := ledger.Amounts{
		ledger.PoolSHM: min(memory, now[ledger.PoolSHM]), ledger.PoolRAM: min(memory, now[ledger.PoolRAM]),
	}
	rest, err := now.Minus(part)
	if err != nil {
		return fault.As(fault.Internal, err)
	}
	rest, err = rest.Plus(ledger.Amounts{ledger.PoolDisk: m.spill.FileBytes(kind, m.BodyBytes(m.layout))})
	if err != nil {
		return fault.As(fault.Internal, err)
	}
	return m.held.Rebook(ctx, rest)
}

// sealedKind is where the segment of an attempt that was handed over lies.
func (s *Synth) sealedKind(a job.Attempt) (handoff.Kind, error) {
	_, kind, err := s.spill.Lookup(a)
	return kind, err
}

// giveBack frees what an attempt that failed before the hand-over holds. What goes wrong is no part of the outcome: the
// agent tries again until the booking is gone.
func (m *making) giveBack(ctx context.Context) {
	if m.held.Booking().Handed { // the hand-over itself went through
		m.takeBack(ctx)
		return
	}
	var err error
	if m.draft != nil {
		err = m.draft.GiveBack()
	} else if err = m.spill.Reclaim(m.run.Attempt()); errors.Is(err, handoff.ErrBusy) { // what was lent
		err = nil
	}
	m.free(ctx, m.held, err)
}

// takeBack frees what was handed over and could not be announced, unless the device's worker has it already.
func (m *making) takeBack(ctx context.Context) {
	a := m.run.Attempt()
	held, err := m.book.Take(context.WithoutCancel(ctx), a)
	if errors.Is(err, agent.ErrBooked) || errors.Is(err, agent.ErrNotBooked) {
		return
	}
	if err != nil { // the segment holds the booking: both go once the fence is raised, or a device's worker takes them
		m.log.Error().Err(err).Stringer("attempt", a).Msg("segment was not taken back")
		return
	}
	m.free(ctx, held, m.spill.Reclaim(a))
}

// free takes a booking out of the book, now if its segment was given back without an error.
func (m *making) free(ctx context.Context, held *agent.Held, err error) {
	if err = held.Free(ctx, err); err != nil {
		m.log.Error().Err(err).Stringer("attempt", m.run.Attempt()).Msg("booking stays for now")
		return
	}
	m.run.Freed(ctx)
}
