package dispatch

import (
	"context"
	"strings"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// Drain lets a node, or the whole rack, finish and take nothing new, or undoes that, and tells how far it is. Asking
// again while it drains only tells. It may be called from any goroutine, like all methods here.
func (l *Leader) Drain(ctx context.Context, q *wire.DrainRequest) (*wire.DrainReply, error) {
	var names []job.Node
	if q.Node != "" {
		_, known := l.parts.Nodes.Node(q.Node)
		mark := l.parts.Store.Mark(q.Node)
		if !known && !mark.Draining && !mark.Cordoned {
			return nil, fault.New(fault.NotFound, "no node %s", q.Node)
		}
		names = []job.Node{q.Node}
	} else {
		for _, n := range l.parts.Nodes.Nodes() {
			names = append(names, n.Node)
		}
		for name := range l.parts.Store.Marks() {
			if _, known := l.parts.Nodes.Node(name); !known && q.Undo {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		if err := l.markDrain(ctx, name, q); err != nil {
			return nil, err
		}
	}
	reply := &wire.DrainReply{}
	err := l.Ask(ctx, func() {
		for _, name := range names {
			l.seeNode(name)
		}
		reply.Running, reply.Estimate = l.core.Drain(q.Node)
		for a, t := range l.tracks {
			if _, owner := l.owns(a); !owner && (q.Node == "" || t.node == q.Node) && l.book(t.node).entries[a] != nil {
				reply.Running++ // it is over, but its bytes are not back
			}
		}
		reply.Drained = !q.Undo && !q.Cordon && reply.Running == 0
	})
	return reply, err
}

func (l *Leader) markDrain(ctx context.Context, name job.Node, q *wire.DrainRequest) error {
	old := l.parts.Store.Mark(name)
	want := func(m *store.NodeMark) {
		switch {
		case q.Undo:
			m.Draining, m.Cordoned = false, false
		case q.Cordon:
			m.Cordoned = true
		default:
			m.Draining = true
		}
	}
	now := old
	want(&now)
	if now.Draining != old.Draining || now.Cordoned != old.Cordoned {
		if _, err := l.parts.Store.SetMark(ctx, name, want); err != nil {
			return err
		}
		l.log.Info().Str("c2.node.id", string(name)).Bool("draining", now.Draining).Bool("cordoned", now.Cordoned).
			Msg("node was marked")
	}
	switch {
	case q.Undo:
		l.sendControl(&wire.Control{Node: name, Kind: wire.ControlUndrain})
	case !q.Cordon && !old.Draining:
		l.sendControl(&wire.Control{Node: name, Kind: wire.ControlDrain, Reason: "asked for by an operator"})
	}
	return nil
}

// remind ends the drain of workers that missed the order, which is sent at most once. Those that stop are let be.
func (l *Leader) remind(s *nodeState, n *rack.Node) {
	now := time.Now()
	if l.parts.Store.Mark(n.Node).Draining || now.Sub(s.remindedAt) < l.cfg.Heartbeat {
		return
	}
	for _, p := range n.Processes {
		if p.Beat.State == wire.StateDraining && !strings.HasPrefix(p.Beat.Reason, wire.ReasonStopping) {
			s.remindedAt = now
			l.sendControl(&wire.Control{Node: n.Node, Kind: wire.ControlUndrain})
			return
		}
	}
}

// SetIntake pauses or resumes intake of the whole rack.
func (l *Leader) SetIntake(ctx context.Context, pause bool, reason string) error {
	l.log.Info().Bool("paused", pause).Str("reason", reason).Msg("intake was set")
	return l.parts.Store.SetIntake(ctx, store.Intake{Paused: pause, Reason: reason, At: time.Now().UTC()})
}

// Readmit lets a device out of quarantine. Without a node it ends a halt: operators say that what was wrong on most
// devices has been put right.
func (l *Leader) Readmit(ctx context.Context, node job.Node, device job.Device) error {
	if node == "" {
		return l.Ask(ctx, func() {
			l.halted = ""
			l.apply(scheduler.Resumed{})
		})
	}
	if _, ok := l.parts.Store.Mark(node).Quarantined[device]; !ok {
		return fault.New(fault.NotFound, "device %s of node %s is not in quarantine", device, node)
	}
	_, err := l.parts.Store.SetMark(ctx, node, func(m *store.NodeMark) {
		delete(m.Quarantined, device)
		delete(m.Paroled, device)
	})
	if err != nil {
		return err
	}
	return l.Ask(ctx, func() { l.readmit(scheduler.Place{Node: node, Device: device}) })
}
