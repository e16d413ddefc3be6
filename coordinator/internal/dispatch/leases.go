package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// provedLeases is how many leases a result may take from the device to the record while its node lives.
const provedLeases = 4

// keepLeases renews the reservations of attempts that are alive, and ends those that are not, once every third of a
// lease.
func (l *Leader) keepLeases(now time.Time) {
	if !l.books.up || now.Sub(l.renewedAt) < l.cfg.Lease/3 {
		return
	}
	l.renewedAt = now
	alive := map[job.Node][]job.Attempt{}
	for a, t := range l.tracks {
		if j, ok := l.owns(a); ok && l.alive(j.Record, a, t, now) {
			alive[t.node] = append(alive[t.node], a)
		}
	}
	expire := now.After(l.holdUntil)
	for name, b := range l.books.of {
		if len(b.entries) > 0 {
			l.renew(name, alive[name], expire)
		}
	}
}

// alive tells whether an attempt's lease goes on: it advances, or it waits its turn on a node that could take it.
func (l *Leader) alive(r *job.Record, a job.Attempt, t *track, now time.Time) bool {
	p := &r.Partitions[a.Partition]
	n, ok := l.parts.Nodes.Node(p.Node)
	if !ok {
		return false
	}
	recent := 2 * l.cfg.Heartbeat
	if live, ok := l.parts.Nodes.Live(p.Node, a); ok && now.Sub(live.SeenAt) <= recent {
		if now.Sub(live.MovedAt) <= recent {
			return true
		}
		if live.Stage != job.Reserved && live.Stage != job.Sealed && live.Stage != job.Proved {
			return false // it is worked on and does not advance
		}
	}
	switch p.Stage {
	case job.Reserved:
		return beats(&n, wire.RoleSynth, "", now, recent) && beats(&n, wire.RoleGPU, p.Device, now, l.cfg.Lease)
	case job.Sealed:
		return beats(&n, wire.RoleGPU, p.Device, now, recent)
	case job.Proved:
		return !l.overdue(t, now)
	case job.Synthesizing, job.Proving, job.Waiting, job.Verified, job.StageFailed, job.StageStopped:
	}
	return false
}

// overdue tells of an attempt that is proved whether that was longer ago than its result may take to the record.
func (l *Leader) overdue(t *track, now time.Time) bool {
	if t.provedAt.IsZero() {
		t.provedAt = now // the record has it by the clock of another one, or as this one was set then
	}
	return now.Sub(t.provedAt) >= provedLeases*l.cfg.Lease
}

// beats tells whether a process of a role, one with the device if one is named, has beaten lately.
func beats(n *rack.Node, role string, device job.Device, now time.Time, within time.Duration) bool {
	for _, p := range n.Processes {
		if p.Beat.Role != role || now.Sub(p.SeenAt) > within {
			continue
		}
		if device == "" {
			return true
		}
		for _, d := range p.Beat.Devices {
			if d.Device == device {
				return true
			}
		}
	}
	return false
}

func (l *Leader) renew(name job.Node, alive []job.Attempt, expire bool) {
	call := l.books.call
	l.lanes.do(laneOfNode(name), func(ctx context.Context) {
		callCtx, cancel := l.call(ctx)
		defer cancel()
		var ended []job.Attempt
		var err error
		if len(alive) > 0 {
			_, err = l.parts.Ledger.Renew(callCtx, call, name, alive)
		}
		if err == nil && expire {
			ended, err = l.parts.Ledger.Expire(callCtx, call, name)
		}
		l.inbox.post(func() {
			if err != nil {
				l.ledgerTrouble(name, fmt.Errorf("renew leases of node %s: %w", name, err))
				return
			}
			l.expired(name, ended)
		})
	})
}

// expired takes the attempts of a node that are in limbo: their bytes still count, and those that still own their
// partitions lose them. What the node does not hold any more comes back with its next declaration.
func (l *Leader) expired(name job.Node, limbo []job.Attempt) {
	b, fresh := l.book(name), false
	for _, a := range limbo {
		if e := b.entries[a]; e != nil && !e.limbo {
			e.limbo, fresh = true, true
		}
		if j, ok := l.ownsOn(a, name); ok {
			l.lose(a, l.obituary(j.Record, a))
		}
	}
	if fresh {
		l.readBook(name)
	}
}

// obituary says what is known of an attempt whose lease ended.
func (l *Leader) obituary(r *job.Record, a job.Attempt) string {
	p := &r.Partitions[a.Partition]
	n, ok := l.parts.Nodes.Node(p.Node)
	if !ok {
		return fmt.Sprintf("node %s is gone: no heartbeat for a lease of %s, partition was %s", p.Node, l.cfg.Lease, p.Stage)
	}
	if live, ok := l.parts.Nodes.Live(p.Node, a); ok {
		if time.Since(live.SeenAt) > 2*l.cfg.Heartbeat {
			return fmt.Sprintf("its worker on node %s is gone, in %s: not heard of since %s", p.Node, p.Stage,
				live.SeenAt.UTC().Format(time.RFC3339))
		}
		return fmt.Sprintf("no progress in %s since %s on node %s", p.Stage, live.MovedAt.UTC().Format(time.RFC3339), p.Node)
	}
	return fmt.Sprintf("its worker on node %s is gone, in %s (last beat of the node at %s)", p.Node, p.Stage,
		n.SeenAt.UTC().Format(time.RFC3339))
}

// lose takes a partition from an attempt whose worker is gone, hung or cut off, and raises the fence.
func (l *Leader) lose(a job.Attempt, cause string) {
	t := l.tracks[a]
	if t != nil && !t.running {
		return
	}
	if t != nil {
		t.running = false // asked once
	}
	mine, before := false, job.Partition{}
	l.change(a.Job, "lose", func(r *job.Record) error {
		if mine = owns(r, a); !mine {
			return store.ErrUnchanged
		}
		before = r.Partitions[a.Partition]
		return r.Lose(a, cause, l.cfg.Policy, time.Now().UTC())
	}, func(j store.Job, err error) {
		if err != nil {
			if t != nil {
				t.running = true
			}
			return
		}
		if l.tookAway(j.Record, a, job.OutcomeLost, cause, mine) {
			l.lost.Add(1)
			if mine {
				l.traceLost(j.Record, a, &before, cause)
			}
			l.log.Warn().Str("attempt", a.String()).Str("cause", cause).
				EmbedObject(telemetry.InTrace(attemptTrace(j.Record, a))).Msg("attempt was lost")
		}
	})
}

// tookAway ends what the loop keeps of an attempt that was to be ended with an outcome. It tells whether that happened:
// the record was changed just now (mine), or by an earlier try whose answer did not come. When the attempt had ended
// otherwise meanwhile, nothing of it is to be told as if it had this outcome.
func (l *Leader) tookAway(r *job.Record, a job.Attempt, outcome job.Outcome, cause string, mine bool) bool {
	t := l.tracks[a]
	if !mine && (t == nil || !t.endedAt.IsZero()) {
		return false // who ended it has told so
	}
	ended := outcome
	if !mine {
		ended = outcomeOf(r, a)
	}
	if t != nil {
		l.sendCancel(t.node, a, cause)
	}
	l.endTrack(a)
	l.parts.Meter.attempt(ended, r, a.Partition)
	l.apply(scheduler.Ended{Attempt: a, Outcome: ended})
	l.publishPartition(r, a.Partition)
	return ended == outcome
}

// outcomeOf is how an attempt ended by the record; cancelled when its history does not reach back so far.
func outcomeOf(r *job.Record, a job.Attempt) job.Outcome {
	for _, attempt := range slices.Backward(r.Partitions[a.Partition].Attempts) {
		if attempt.Fence == a.Fence && attempt.Outcome != "" {
			return attempt.Outcome
		}
	}
	return job.OutcomeCancelled
}
