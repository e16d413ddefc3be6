package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/wire"
)

// A device in quarantine is asked, after a pause, to prove a known answer; its beats say what came of it. If that was
// right it is let back, else the pause doubles. One that is taken out again soon after begins where it was.

// canary is an order to prove a known answer that is under way.
type canary struct {
	id     string
	sentAt time.Time
	// writing tells that the outcome is being written.
	writing bool
}

// pause is how long a device stays in quarantine that has sat out so many pauses before.
func (c *Config) pause(tries int) time.Duration {
	pause := c.QuarantineMin
	for range tries {
		if pause *= 2; pause >= c.QuarantineMax {
			return c.QuarantineMax
		}
	}
	return pause
}

// quarantine takes a device out, and keeps that beyond this leader's reign.
func (l *Leader) quarantine(d *scheduler.Quarantine) {
	l.log.Error().Str("c2.node.id", string(d.Place.Node)).Str("c2.gpu.id", string(d.Place.Device)).
		Str("reason", d.Reason).Msg("device is in quarantine")
	now := time.Now().UTC()
	l.mark(d.Place, "quarantine not kept", func(m *store.NodeMark) {
		q := store.Quarantine{Reason: d.Reason, At: now}
		if last, ok := m.Paroled[d.Place.Device]; ok && now.Sub(last.At) < l.cfg.QuarantineMax {
			q.TryCount = last.TryCount + 1
		}
		q.Next = now.Add(l.cfg.pause(q.TryCount))
		delete(m.Paroled, d.Place.Device)
		m.Quarantined[d.Place.Device] = q
	}, func(bool) { l.seeNode(d.Place.Node) })
}

// mark changes what is kept about a device's node, and then does something in the loop.
func (l *Leader) mark(at scheduler.Place, trouble string, change func(*store.NodeMark), after func(ok bool)) {
	l.lanes.do("mark "+string(at.Node), func(ctx context.Context) {
		_, err := l.parts.Store.SetMark(ctx, at.Node, change)
		if err != nil {
			l.log.Warn().Err(err).Str("c2.node.id", string(at.Node)).Str("c2.gpu.id", string(at.Device)).Msg(trouble)
		}
		l.inbox.post(func() { after(err == nil) })
	})
}

// lookAtQuarantines sends canaries that are due, and takes what came of them.
func (l *Leader) lookAtQuarantines(now time.Time) {
	for name, mark := range l.parts.Store.Marks() {
		if len(mark.Quarantined) == 0 {
			continue
		}
		n, there := l.parts.Nodes.Node(name)
		for device, q := range mark.Quarantined {
			at := scheduler.Place{Node: name, Device: device}
			state := deviceState(&n, at)
			if !there || state == nil {
				delete(l.canaries, at) // its worker is gone, and with it what it was asked
				continue
			}
			l.lookAtQuarantine(at, q, state, now)
		}
	}
}

func (l *Leader) lookAtQuarantine(at scheduler.Place, q store.Quarantine, state *wire.DeviceState, now time.Time) {
	c := l.canaries[at]
	switch {
	case c == nil:
		// A time by another leader's clock is no further ahead than a pause can be.
		if now.Before(q.Next) && q.Next.Sub(now) <= l.cfg.QuarantineMax || now.Sub(q.At).Abs() < l.cfg.QuarantineMin {
			return
		}
		c = &canary{id: uuid.NewString(), sentAt: now}
		l.canaries[at] = c
		l.sendControl(&wire.Control{Node: at.Node, Kind: wire.ControlCanary, Device: at.Device, Canary: c.id})
	case c.writing:
	case state.Canary != nil && state.Canary.ID == c.id && state.Canary.OK:
		l.parole(at, c, now)
	case state.Canary != nil && state.Canary.ID == c.id:
		l.prolong(at, c, clipReason(state.Canary.Reason), now)
	case now.Sub(c.sentAt) > l.cfg.CanaryTimeout:
		l.prolong(at, c, fmt.Sprintf("no answer within %s", l.cfg.CanaryTimeout), now)
	}
}

// deviceState is what the worker that drives a device says of it, nil when none does.
func deviceState(n *rack.Node, at scheduler.Place) (last *wire.DeviceState) {
	for i := range n.Processes {
		for k := range n.Processes[i].Beat.Devices {
			if d := &n.Processes[i].Beat.Devices[k]; d.Device == at.Device {
				last = d // the later start drives it
			}
		}
	}
	return last
}

// parole lets a device back that proved a known answer.
func (l *Leader) parole(at scheduler.Place, c *canary, now time.Time) {
	c.writing = true
	l.mark(at, "device not let back yet", func(m *store.NodeMark) {
		q, ok := m.Quarantined[at.Device]
		if !ok {
			return
		}
		delete(m.Quarantined, at.Device)
		q.At, q.Next, q.Failed = now.UTC(), time.Time{}, ""
		m.Paroled[at.Device] = q
	}, func(ok bool) {
		if c.writing = false; !ok {
			return
		}
		l.log.Info().Str("c2.node.id", string(at.Node)).Str("c2.gpu.id", string(at.Device)).
			Msg("device proved a known answer and is let back from quarantine")
		l.readmit(at)
	})
}

// prolong keeps a device in quarantine that did not prove a known answer.
func (l *Leader) prolong(at scheduler.Place, c *canary, why string, now time.Time) {
	c.writing = true
	var next time.Time
	l.mark(at, "quarantine not prolonged yet", func(m *store.NodeMark) {
		q, ok := m.Quarantined[at.Device]
		if !ok {
			return
		}
		q.TryCount++
		next = now.UTC().Add(l.cfg.pause(q.TryCount))
		q.Next, q.Failed = next, why
		m.Quarantined[at.Device] = q
	}, func(ok bool) {
		if c.writing = false; !ok {
			return
		}
		delete(l.canaries, at)
		l.log.Warn().Str("c2.node.id", string(at.Node)).Str("c2.gpu.id", string(at.Device)).Str("reason", why).
			Time("next", next).Msg("device did not prove a known answer and stays in quarantine")
		l.seeNode(at.Node)
	})
}

// readmit has the scheduler give work to a device again.
func (l *Leader) readmit(at scheduler.Place) {
	delete(l.canaries, at)
	l.apply(scheduler.Readmitted{Place: at})
	l.seeNode(at.Node)
}
