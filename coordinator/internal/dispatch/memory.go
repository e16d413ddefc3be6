package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/sizes"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/wire"
)

// laneOfLearned is where what was learned is read and written, one after the other.
const laneOfLearned = "learned"

// learned is how far what attempts taught is stored.
type learned struct {
	// stored is as it was read or written last, nil until it was read: nothing is written before.
	stored *store.Learned
	// underWay tells that it is being read or written, triedAt when that began.
	underWay bool
	triedAt  time.Time
	// changes is the scheduler's count when it was written, at is when.
	changes uint64
	at      time.Time
}

// keepLearned reads what earlier reigns learned, and stores what this one did. What is not stored when a leader dies is
// learned again.
func (l *Leader) keepLearned(now time.Time) {
	s := &l.learned
	pause := l.cfg.LearnedEvery
	if s.stored == nil {
		pause = l.cfg.Tick
	}
	if s.underWay || now.Sub(s.triedAt) < pause || s.stored != nil && s.changes == l.core.SizesChanges() {
		return
	}
	s.underWay, s.triedAt = true, now
	if s.stored == nil {
		l.lanes.do(laneOfLearned, l.readLearned)
		return
	}
	l.lanes.do(laneOfLearned, func(ctx context.Context) {
		if err := l.writeLearned(ctx, nil); err != nil {
			l.log.Warn().Err(err).Msg("what was learned is not stored")
		}
	})
}

// readLearned has the scheduler remember what is stored.
func (l *Leader) readLearned(ctx context.Context) {
	stored, err := l.parts.Store.Learned(ctx)
	var before *sizes.Table
	if err == nil {
		if before, err = sizes.Decode(l.sizesConfig(), stored.Sizes, stored.Speeds); err != nil {
			l.log.Error().Err(err).Msg("what was learned is unreadable, and is learned again")
			before, err = sizes.New(l.sizesConfig()), nil
		}
	}
	l.inbox.post(func() {
		l.learned.underWay = false
		if err != nil {
			l.log.Warn().Err(err).Msg("what was learned is not read yet")
			return
		}
		l.learned.stored = stored
		clean := l.core.SizesChanges() == 0
		l.apply(scheduler.Remembered{Sizes: before})
		if clean { // nothing but what is stored
			l.learned.changes = l.core.SizesChanges()
		}
	})
}

func (l *Leader) sizesConfig() sizes.Config {
	c := &l.cfg.Scheduler
	return sizes.Config{Margin: c.PeakMargin, DriftMax: c.DriftMax, Slack: c.PeakSlack}
}

// writeLearned stores what was learned, with a change that the scheduler gets to know only when it is stored. It runs
// in its lane.
func (l *Leader) writeLearned(ctx context.Context, change *scheduler.SizePinned) error {
	table, stored, err := l.knownSizes(ctx)
	if err == nil && stored == nil { // asked for a pin early in the reign, or others wrote
		l.readLearned(ctx)
		table, stored, err = l.knownSizes(ctx)
	}
	if err != nil {
		return err
	}
	changes := table.Changes()
	err = l.writeTable(ctx, table, stored, change)
	l.inbox.post(func() {
		l.learned.underWay = false
		switch {
		case err == nil:
			l.learned.stored, l.learned.changes, l.learned.at = stored, changes, time.Now()
			if change != nil {
				l.apply(*change)
			}
		case fault.KindOf(err) == fault.Conflict && !refusedByTable(err):
			l.learned.stored, l.learned.triedAt = nil, time.Time{} // others wrote: it is read again
		}
	})
	return err
}

// knownSizes returns a copy of the scheduler's table, and of what is stored: nil when that is not read yet.
func (l *Leader) knownSizes(ctx context.Context) (table *sizes.Table, stored *store.Learned, err error) {
	err = l.Ask(ctx, func() {
		table = l.core.Sizes()
		if l.learned.stored != nil {
			known := *l.learned.stored
			stored = &known
		}
	})
	return table, stored, err
}

// errTable marks what the table itself refuses.
type errTable struct{ error }

func (e errTable) Unwrap() error { return e.error }

func refusedByTable(err error) bool {
	var refused errTable
	return errors.As(err, &refused)
}

func (l *Leader) writeTable(
	ctx context.Context, table *sizes.Table, stored *store.Learned, change *scheduler.SizePinned,
) error {
	if stored == nil {
		return fault.New(fault.Transient, "what was learned is not read yet")
	}
	if change != nil {
		var err error
		if change.Bytes > 0 {
			err = table.Pin(time.Now().UTC(), change.Key, change.Bytes)
		} else {
			err = table.Unpin(change.Key)
		}
		if err != nil {
			return errTable{err}
		}
	}
	rows, speeds, err := table.Encode()
	if err != nil {
		return err
	}
	return l.parts.Store.SaveLearned(ctx, stored, rows, speeds)
}

// Memory lists what was learned of attempts' memory and time, or pins a size. A pin is stored before the answer.
// Errors: kind NotFound for what no node of the rack has, Conflict when another leader wrote at the same time.
func (l *Leader) Memory(ctx context.Context, q *wire.MemoryRequest) (*wire.MemoryReply, error) {
	if q.Do != "" {
		change := &scheduler.SizePinned{
			Key:   sizes.Key{Circuit: q.Circuit, Stage: q.Stage, Kind: q.Kind, Pool: q.Pool},
			Bytes: q.Bytes,
		}
		if err := l.pin(ctx, change); err != nil {
			return nil, err
		}
	}
	reply := &wire.MemoryReply{Sizes: []wire.MemorySize{}, Speeds: []wire.StageSpeed{}}
	var table *sizes.Table
	if err := l.Ask(ctx, func() {
		table = l.core.Sizes()
		reply.Drifts, reply.Drifting = l.core.Drifts()
		if at := l.learned.at; !at.IsZero() {
			reply.StoredAt = &at
		}
	}); err != nil {
		return nil, err
	}
	for _, s := range table.Sizes() {
		if q.Circuit == "" || q.Circuit == s.Circuit {
			reply.Sizes = append(reply.Sizes, sizeView(&s))
		}
	}
	for _, s := range table.Speeds() {
		if q.Circuit == "" || q.Circuit == s.Circuit {
			reply.Speeds = append(reply.Speeds, wire.StageSpeed{
				Circuit: s.Circuit, Node: s.Node, Device: s.Device, Synthesis: s.Synthesis, Proof: s.Proof, Samples: s.Samples,
				At: s.At,
			})
		}
	}
	return reply, nil
}

// pin changes a pin, and returns when the change is stored and in use.
func (l *Leader) pin(ctx context.Context, change *scheduler.SizePinned) error {
	if err := change.Key.Check(); err != nil {
		return fmt.Errorf("pin size: %w", err)
	}
	if change.Bytes > 0 {
		if err := l.hasKind(change.Key); err != nil {
			return err
		}
	}
	done := make(chan error, 1)
	l.lanes.do(laneOfLearned, func(ctx context.Context) { done <- l.writeLearned(ctx, change) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fault.As(fault.Transient, fmt.Errorf("pin size: %w", context.Cause(ctx)))
	}
}

// hasKind refuses to pin a size of what no node has: a name that was mistyped would have no effect.
func (l *Leader) hasKind(k sizes.Key) error {
	var kinds []string
	for _, n := range l.parts.Nodes.Nodes() {
		view := n.View(l.parts.Store.Mark(n.Node))
		for _, d := range view.Devices {
			if _, ok := d.Circuits[k.Circuit]; !ok {
				continue
			}
			if d.Kind == k.Kind {
				return nil
			}
			kinds = append(kinds, fmt.Sprintf("%q", d.Kind))
		}
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	err := fault.New(fault.NotFound, "no device of kind %q proves circuit %s", k.Kind, k.Circuit)
	if len(kinds) > 0 {
		return fault.WithHint(err, fmt.Sprintf("devices that do are of kind %s", kinds[0]))
	}
	return err
}

func sizeView(s *sizes.Size) wire.MemorySize {
	v := wire.MemorySize{
		Circuit: s.Circuit, Stage: s.Stage, Kind: s.Kind, Pool: s.Pool, Computed: s.Computed, P50: s.P50, P99: s.P99,
		Samples: s.Samples, Booked: s.Booked, Pinned: s.Pinned, MeasuredAt: s.MeasuredAt,
	}
	switch {
	case s.Over:
		v.Drift = wire.DriftOver
	case s.Under:
		v.Drift = wire.DriftUnder
	}
	return v
}

// sizeDrifted tells, in the log and as an event, that measured sizes begin or cease to be off from what workers
// compute.
func (l *Leader) sizeDrifted(d *scheduler.Drifted) {
	l.log.Warn().Str("circuit", d.Circuit).Str("stage", string(d.Stage)).Str("kind", d.Kind).Str("pool", string(d.Pool)).
		Stringer("computed", d.Computed).Stringer("p99", d.P99).Stringer("booked", d.Booked).
		Bool("over", d.Over).Bool("under", d.Under).Msg("what attempts take drifts from what workers compute")
	e := &wire.DriftEvent{At: time.Now().UTC(), Size: sizeView(&d.Size)}
	l.lanes.do("events of drift", func(ctx context.Context) {
		data, err := wire.Encode(e)
		if err == nil {
			id := fmt.Sprintf("drift.%d.%d", l.reign.Term, e.At.UnixNano())
			err = l.publish(ctx, wire.DriftSubject, id, data, "")
		}
		if err != nil {
			l.log.Warn().Err(err).Msg("event of drift not published")
		}
	})
}
