package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// seeNode looks at a node that beat, or that is gone.
func (l *Leader) seeNode(name job.Node) {
	n, ok := l.parts.Nodes.Node(name)
	s := l.node(name)
	if !ok {
		s.gone = true
		l.apply(scheduler.NodeGone{Node: name})
		return
	}
	s.gone = false
	l.warnSlow(s, &n)
	l.tellNode(&n, nil)
	l.remind(s, &n)
	for a, live := range l.parts.Nodes.LiveOn(name) {
		l.advance(a, name, stageSeen{live.Stage, live.Handoff, live.HandoffReason})
	}
	if n.Host != nil && n.Host.Count > max(s.hostCount, l.reportsBefore) {
		s.hostCount = n.Host.Count
		l.seeHost(s, &n)
	}
}

// warnSlow says, once for each process, that it beats too seldom to be given work.
func (l *Leader) warnSlow(s *nodeState, n *rack.Node) {
	for _, p := range n.Processes {
		if p.Slow == "" || slices.Contains(s.slow, p.Beat.Instance) {
			continue
		}
		l.log.Error().Str("c2.node.id", string(n.Node)).Str("role", p.Beat.Role).Str("reason", p.Slow).
			Msg("worker is given no work")
		if s.slow = append(s.slow, p.Beat.Instance); len(s.slow) > rack.ProcessesMax {
			s.slow = s.slow[1:]
		}
	}
}

// tellNode gives the scheduler a node, with its book when there is a new one.
func (l *Leader) tellNode(n *rack.Node, b *scheduler.Book) {
	view := n.View(l.parts.Store.Mark(n.Node))
	view.Book = b
	l.apply(scheduler.NodeSeen{Node: view})
}

// advance notes that an attempt reached a stage. Reports come in any order and more than once; the record takes the
// latest.
func (l *Leader) advance(a job.Attempt, node job.Node, to stageSeen) {
	stage := to.stage
	j, ok := l.owns(a)
	if !ok || !stage.Running() || j.Record.Partitions[a.Partition].Node != node {
		return
	}
	if rank(stage) <= rank(j.Record.Partitions[a.Partition].Stage) {
		return
	}
	s := l.job(a.Job)
	seen, under := s.stages[a]
	if under && rank(stage) <= rank(seen.stage) {
		return
	}
	if to.handoff == "" {
		to.handoff, to.why = seen.handoff, seen.why
	}
	s.stages[a] = to
	l.apply(scheduler.Progress{Attempt: a, Stage: stage})
	if under {
		return
	}
	l.lanes.do(laneOfJob(a.Job), func(ctx context.Context) { l.writeStages(ctx, a.Job) })
}

// rank orders the stages of a running attempt.
func rank(s job.Stage) int {
	switch s {
	case job.Reserved:
		return 1
	case job.Synthesizing:
		return 2
	case job.Sealed:
		return 3
	case job.Proving:
		return 4
	case job.Proved:
		return 5
	case job.Waiting, job.Verified, job.StageFailed, job.StageStopped:
	}
	return 0
}

// writeStages puts the stages that were seen since into the record, all of a job in one write.
func (l *Leader) writeStages(ctx context.Context, id job.ID) {
	var stages map[job.Attempt]stageSeen
	taken := make(chan struct{})
	l.inbox.post(func() {
		s := l.job(id)
		stages, s.stages = s.stages, map[job.Attempt]stageSeen{}
		close(taken)
	})
	select {
	case <-taken:
	case <-ctx.Done():
		return
	}
	if len(stages) == 0 {
		return
	}
	var fallen []job.Attempt // whose segment is not in the preferred place
	j, err := l.parts.Store.Update(ctx, id, func(r *job.Record) error {
		any := false
		fallen = fallen[:0]
		for a, seen := range stages {
			changed, err := r.Advance(a, seen.stage, time.Now().UTC())
			if err != nil || !changed {
				continue // stale, or passed by now
			}
			any = true
			if last := r.Partitions[a.Partition].Last(); last != nil && last.Fence == a.Fence && seen.handoff != "" {
				if seen.handoff != wire.HandoffSHM && last.Handoff != seen.handoff {
					fallen = append(fallen, a)
				}
				last.Handoff, last.HandoffReason = clip(seen.handoff), clipReason(seen.why)
			}
		}
		if !any {
			return store.ErrUnchanged
		}
		return nil
	})
	if err != nil {
		l.log.Warn().Err(err).Str("c2.job.id", string(id)).Msg("stages not written")
		return
	}
	for _, a := range fallen {
		l.log.Warn().Str("attempt", a.String()).Str("handoff", stages[a].handoff).Str("reason", stages[a].why).
			Msg("segment is not handed over in memory")
	}
	l.inbox.post(func() {
		for a, seen := range stages {
			l.apply(scheduler.Progress{Attempt: a, Stage: seen.stage})
			if owns(j.Record, a) {
				l.publishPartition(j.Record, a.Partition)
			}
		}
	})
}

// evict asks a node to unload an idle asset. The outcome comes with one of its next host reports.
func (l *Leader) evict(d *scheduler.Evict) {
	l.sendControl(&wire.Control{
		Node: d.Node, Kind: wire.ControlEvict, Asset: d.Asset, Reason: "room for attempt " + d.For.String(),
	})
	l.book(d.Node).evicting[d.Asset] = time.Now()
}
