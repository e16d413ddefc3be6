package synth

import (
	"context"
	"errors"
	"fmt"

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

// giveBack frees what an attempt that failed before the hand-over holds.
func (m *making) giveBack(ctx context.Context) error {
	if m.held.Booking().Handed { // the hand-over itself went through
		return m.takeBack(ctx)
	}
	ctx = context.WithoutCancel(ctx)
	if m.draft != nil {
		if err := m.draft.GiveBack(); err != nil {
			return fmt.Errorf("give back segment of attempt %s: %w", m.run.Attempt(), err)
		}
	} else if err := m.spill.Reclaim(m.run.Attempt()); err != nil && !errors.Is(err, handoff.ErrBusy) { // what was lent
		return fmt.Errorf("give back segment of attempt %s: %w", m.run.Attempt(), err)
	}
	if err := m.held.Remove(ctx); err != nil {
		return err
	}
	m.run.Freed(ctx)
	return nil
}

// takeBack frees what was handed over and could not be announced, unless the device's worker has it already.
func (m *making) takeBack(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	a := m.run.Attempt()
	held, err := m.book.Take(ctx, a)
	if errors.Is(err, agent.ErrBooked) || errors.Is(err, agent.ErrNotBooked) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := m.spill.Reclaim(a); err != nil {
		return fmt.Errorf("give back segment of attempt %s: %w", a, err)
	}
	if err := held.Remove(ctx); err != nil {
		return err
	}
	m.run.Freed(ctx)
	return nil
}
