package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// publish stores a message in its stream.
func (l *Leader) publish(ctx context.Context, subject, id string, data []byte, trace string) error {
	ctx, cancel := l.call(ctx)
	defer cancel()
	if _, err := l.parts.Bus.Publish(ctx, l.message(subject, id, data, trace)); err != nil {
		return fmt.Errorf("publish %s: %w", subject, err)
	}
	return nil
}

// tell publishes what happened to a job, or to one of its partitions. Telling the same again does nothing.
func (l *Leader) tell(ctx context.Context, r *job.Record, what string, partition *int) error {
	e := &wire.Event{
		Job: r.ID, Tenant: r.Tenant, What: what, At: time.Now().UTC(), State: r.State, Partition: partition,
		Verified: r.VerifiedCount(), Fault: r.Fault,
	}
	id := string(r.ID) + "." + what
	if partition != nil {
		p := &r.Partitions[*partition]
		e.Stage, e.Node, e.Device, e.At = p.Stage, p.Node, p.Device, p.StageAt
		if last := p.Last(); last != nil && p.Stage == job.Waiting {
			e.Fault = last.Fault
		}
		id = fmt.Sprintf("%s.%s.%s", id, r.Attempt(*partition), p.Stage)
	} else if r.EndedAt != nil {
		e.At = *r.EndedAt
		id = fmt.Sprintf("%s.%d", id, r.EndedAt.UnixNano())
	}
	data, err := wire.Encode(e)
	if err != nil {
		return fmt.Errorf("encode event of job %s: %w", r.ID, err)
	}
	return l.publish(ctx, wire.EventSubject(r.Tenant, r.ID, what), id, data, r.TraceParent)
}

// publishEvent tells something that may be missed: who reads events reloads records after a gap.
func (l *Leader) publishEvent(r *job.Record, what string, partition *int) {
	l.lanes.do("events "+string(r.ID), func(ctx context.Context) {
		if err := l.tell(ctx, r, what, partition); err != nil {
			l.log.Debug().Err(err).Msg("event not published")
		}
	})
}

// publishPartition tells that a partition changed.
func (l *Leader) publishPartition(r *job.Record, partition int) {
	l.publishEvent(r, wire.EventPartition, &partition)
}

// sendCancel tells a node to stop an attempt. It is sent at most once: fences and beats repair what is lost.
func (l *Leader) sendCancel(node job.Node, a job.Attempt, reason string) {
	l.sendControl(&wire.Control{Node: node, Kind: wire.ControlCancel, Attempt: &a, Reason: reason})
}

func (l *Leader) sendControl(c *wire.Control) {
	data, err := wire.Encode(c)
	if err != nil {
		l.log.Error().Err(err).Msg("control not encoded")
		return
	}
	l.lanes.do("control "+string(c.Node), func(ctx context.Context) {
		ctx, cancel := l.call(ctx)
		defer cancel()
		if err := l.parts.Bus.Send(ctx, bus.Message{Subject: wire.ControlSubject(c.Node), Data: data}); err != nil {
			l.log.Warn().Err(err).Str("c2.node.id", string(c.Node)).Str("control", c.Kind).Msg("control not sent")
		}
	})
}

// message puts a message together.
func (l *Leader) message(subject, id string, data []byte, trace string) bus.Message {
	m := bus.Message{Subject: subject, ID: id, Data: data}
	if c, err := telemetry.ParseTrace(trace); err == nil {
		m.Header = c.Header()
	}
	return m
}
