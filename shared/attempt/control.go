package attempt

import (
	"strings"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/wire"
)

// Obey follows the coordinator's orders for this node until stop is called. Orders of other kinds than
// cancel, drain and undrain go to other, which may be nil.
func (w *Worker) Obey(other func(*wire.Control)) (stop func(), err error) {
	return w.Bus.Subscribe(wire.ControlSubject(w.Node), func(m bus.Message) {
		var order wire.Control
		if err := wire.Decode(m.Data, &order); err != nil {
			w.Log.Warn().Err(err).Msg("order was not understood")
			return
		}
		if order.Node != w.Node {
			w.Log.Warn().Str("node", string(order.Node)).Msg("order is for another node")
			return
		}
		switch order.Kind {
		case wire.ControlCancel:
			if w.Board.Cancel(*order.Attempt, ErrCancelled) {
				w.Log.Info().Stringer("attempt", *order.Attempt).Str("reason", order.Reason).Msg("attempt cancelled")
			}
		case wire.ControlDrain:
			w.Log.Info().Str("reason", order.Reason).Msg("drain ordered")
			w.drains().Set(GateDrain, "draining: "+order.Reason)
		case wire.ControlUndrain:
			w.Log.Info().Msg("drain ended")
			w.drains().Set(GateDrain, "")
		default:
			if other != nil {
				other(&order)
			}
		}
	})
}

// drains is where a drain is noted: it keeps new work away, and of what Finishes nothing is new.
func (w *Worker) drains() *Gate {
	if w.Finishes {
		return w.Notes
	}
	return w.Gate
}

// State is what beats say of the worker, with the reason.
func (w *Worker) State() (state, reason string) {
	var reasons []string
	for _, g := range []*Gate{w.Gate, w.Notes} {
		if text := g.Reasons(); text != "" {
			reasons = append(reasons, text)
		}
	}
	switch {
	case len(reasons) == 0:
		return wire.StateReady, ""
	case w.drains().Has(GateDrain):
		return wire.StateDraining, strings.Join(reasons, "; ")
	}
	return wire.StateNotReady, strings.Join(reasons, "; ")
}
