package lead

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/wire"
)

// Config tunes the election.
type Config struct {
	// Instance names one start of a coordinator; it must differ between all that run.
	Instance string
	// Lease is how long a leader may go without a renewal; others take over when it has passed. 2s by default.
	Lease time.Duration
	// Unable is why this instance could not do all of a leader's work now, "" when it could; nil is always "". It is asked
	// often and must not block.
	Unable func() string
}

// LeaseDefault makes another coordinator lead within three seconds.
const LeaseDefault = 2 * time.Second

// Validate tells all that is wrong.
func (c *Config) Validate() error {
	var errs []error
	if c.Instance == "" || len(c.Instance) > 64 {
		errs = append(errs, fmt.Errorf("instance must be a text of 1 to 64 bytes, not %q", c.Instance))
	}
	if c.Lease < 10*time.Millisecond || c.Lease > time.Minute {
		errs = append(errs, fmt.Errorf("lease must be 10ms to 1m, not %s", c.Lease))
	}
	return errors.Join(errs...)
}

// Reign is one time of leading.
type Reign struct {
	Term uint64
	// Epoch names the life of the ledger. It is minted with the key, so it changes when all disks of the bus were lost.
	Epoch string
}

// Elector takes part in the election.
type Elector struct {
	cfg Config
	kv  bus.KV
	log zerolog.Logger

	writing sync.Mutex // one rewrite of the own key at a time

	mu       sync.Mutex
	seen     wire.Lead
	revision uint64
	seenAt   time.Time
	leading  bool
	floor    uint64 // terms up to this were used, whatever the key says
	told     string // why this instance is unable, as it was logged last
}

// New makes an elector on the bucket c2-lead.
func New(kv bus.KV, cfg Config, log zerolog.Logger) (*Elector, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure election: %w", err)
	}
	return &Elector{cfg: cfg, kv: kv, log: log}, nil
}

// Seen gives the leader's key as it was last read, and whether it is this elector's own and in force.
func (e *Elector) Seen() (wire.Lead, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen, e.leading
}

// Run takes part until the context ends. Whenever this instance leads, it calls work, whose context ends with the
// reign; work must return then. When it returns earlier, the lead is given up, and taken again no sooner than a lease
// later (others go first); one that was merely not renewed in time is taken again at once if nobody else has it. An
// error of work that has a method SeenTerm tells that a higher term was in use elsewhere: the key began anew with its
// store, and the next reign's term is above that one. Run returns the context's error.
func (e *Elector) Run(ctx context.Context, work func(context.Context, Reign) error) error {
	changed, stop := e.watch(ctx)
	defer stop()
	poll := time.NewTimer(0)
	defer poll.Stop()
	var pauseUntil time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-poll.C:
		}
		if err := e.look(ctx); err != nil && ctx.Err() == nil {
			e.log.Debug().Err(err).Msg("leader unknown")
		} else if e.due(time.Now()) && time.Now().After(pauseUntil) {
			reign, sentAt, err := e.take(ctx)
			switch {
			case err == nil:
				err := e.reign(ctx, reign, sentAt, work)
				if err != nil && ctx.Err() == nil {
					e.raise(err)
					e.log.Warn().Err(err).Uint64("term", reign.Term).Msg("lead given up")
				}
				if !errors.Is(err, errExpired) {
					pauseUntil = time.Now().Add(e.cfg.Lease)
				}
			case ctx.Err() == nil && fault.KindOf(err) != fault.Conflict:
				e.log.Warn().Err(err).Msg("lead not taken")
			}
		} else {
			e.challenge(ctx)
		}
		poll.Reset(e.next(time.Now()))
	}
}

// next is how long to wait before the key is looked at again: until nobody leads, if that may be soon.
func (e *Elector) next(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	wait := e.cfg.Lease / 4
	if left := e.seenAt.Add(e.lease()).Sub(now) + time.Millisecond; left > 0 && left < wait {
		wait = left
	}
	return wait
}

// lease is the longer of the leader's and the own, so coordinators may be set differently. The lock is held.
func (e *Elector) lease() time.Duration { return max(e.seen.Lease, e.cfg.Lease) }

// raise notes a term that work has met.
func (e *Elector) raise(err error) {
	var met interface {
		error
		SeenTerm() uint64
	}
	if errors.As(err, &met) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.floor = max(e.floor, met.SeenTerm())
	}
}

// look reads the key.
func (e *Elector) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Lease)
	defer cancel()
	entry, err := e.kv.Get(ctx, wire.LeadKey)
	if fault.KindOf(err) == fault.NotFound {
		e.saw(wire.Lead{}, 0)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read leader: %w", err)
	}
	var l wire.Lead
	if err := json.Unmarshal(entry.Value, &l); err != nil {
		return fault.As(fault.Corrupt, fmt.Errorf("decode leader: %w", err))
	}
	e.saw(l, entry.Revision)
	return nil
}

// watch has changes of the key seen when they happen; the channel gets a value when the lead was released. Without it,
// looking from time to time is enough.
func (e *Elector) watch(ctx context.Context) (released <-chan struct{}, stop func()) {
	changed := make(chan struct{}, 1)
	stop, err := e.kv.Watch(ctx, "", func(entry bus.Entry) {
		var l wire.Lead
		if entry.Key != wire.LeadKey || entry.Deleted || json.Unmarshal(entry.Value, &l) != nil {
			return
		}
		e.mu.Lock()
		later := entry.Revision > e.revision
		e.mu.Unlock()
		if !later {
			return
		}
		e.saw(l, entry.Revision)
		if l.Instance == "" {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}, func() {})
	if err != nil {
		e.log.Debug().Err(err).Msg("leader not watched")
		return nil, func() {}
	}
	return changed, stop
}

func (e *Elector) saw(l wire.Lead, revision uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if revision != e.revision || e.seenAt.IsZero() {
		e.seen, e.revision, e.seenAt = l, revision, time.Now()
	}
}

// due tells whether nobody leads, and no better instance is to go first.
func (e *Elector) due(now time.Time) bool {
	unable := e.unable()
	e.mu.Lock()
	defer e.mu.Unlock()
	since := now.Sub(e.seenAt)
	switch {
	case unable != "":
		return since > e.lease()+e.cfg.Lease // one that is able has taken it by then
	case e.revision == 0, e.seen.Instance == "", e.seen.Instance == e.cfg.Instance:
		return true // the own, since the reign before: nobody else has taken it
	}
	return since > e.lease()
}

// take writes the next term. It gives the time before the write, from which the lease counts.
func (e *Elector) take(ctx context.Context) (Reign, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Lease)
	defer cancel()
	e.mu.Lock()
	old, revision, last := e.seen, e.revision, max(e.seen.Term, e.floor)
	e.mu.Unlock()
	next := wire.Lead{
		Version: 1, Term: last + 1, Epoch: old.Epoch, Instance: e.cfg.Instance, Lease: e.cfg.Lease, Seq: old.Seq + 1,
		Unable: e.unable(),
	}
	if next.Epoch == "" {
		next.Epoch = uuid.NewString()
	}
	sentAt := time.Now()
	if err := e.write(ctx, next, revision); err != nil {
		return Reign{}, time.Time{}, fmt.Errorf("take the lead in term %d: %w", next.Term, err)
	}
	return Reign{Term: next.Term, Epoch: next.Epoch}, sentAt, nil
}

// write replaces the key; revision 0 creates it.
func (e *Elector) write(ctx context.Context, l wire.Lead, revision uint64) error {
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode leader: %w", err)
	}
	var next uint64
	if revision == 0 {
		next, err = e.kv.Create(ctx, wire.LeadKey, data)
	} else {
		next, err = e.kv.Update(ctx, wire.LeadKey, data, revision)
	}
	if err != nil {
		return err
	}
	e.saw(l, next)
	return nil
}

// reign leads until the work returns or the lead is lost.
func (e *Elector) reign(ctx context.Context, r Reign, sentAt time.Time, work func(context.Context, Reign) error) error {
	e.lead(true)
	defer e.lead(false)
	e.log.Info().Uint64("term", r.Term).Msg("leading")
	workCtx, end := context.WithCancelCause(ctx)
	defer end(nil)
	done := make(chan error, 1)
	go func() { done <- work(workCtx, r) }()

	expired := fault.As(fault.Lost, fmt.Errorf("%w for %s", errExpired, e.cfg.Lease))
	deadline := newDeadline(sentAt.Add(e.cfg.Lease), e.cfg.Lease/8, func() { end(expired) })
	defer deadline.stop()
	renew := time.NewTicker(e.cfg.Lease / 4)
	defer renew.Stop()
	lastTry := func(late time.Duration) {
		sentAt := time.Now()
		if err := e.renew(workCtx, r); err != nil {
			end(errors.Join(expired, err))
			return
		}
		deadline.set(sentAt.Add(e.cfg.Lease))
		e.log.Warn().Dur("stood_still", late).Uint64("term", r.Term).
			Msg("this host stood still for longer than the lease; nobody else has taken the lead, it goes on")
	}
	var rival rival
	for {
		select {
		case err := <-done:
			e.release(r)
			if cause := context.Cause(workCtx); cause != nil && ctx.Err() == nil {
				return cause
			}
			return err
		case <-workCtx.Done():
			err := <-done
			cause := context.Cause(workCtx)
			if ctx.Err() != nil || errors.Is(cause, errGivenWay) {
				e.release(r)
			}
			if ctx.Err() != nil {
				return err
			}
			return cause
		case late := <-deadline.late:
			lastTry(late)
		case <-renew.C:
			select {
			case late := <-deadline.late: // goes first: each renewal without an answer takes a while
				lastTry(late)
				continue
			default:
			}
			sentAt := time.Now()
			switch err := e.renew(workCtx, r); {
			case err == nil:
				deadline.set(sentAt.Add(e.cfg.Lease))
			case fault.KindOf(err) == fault.Lost:
				end(err)
			default:
				e.log.Debug().Err(err).Msg("lead not renewed")
			}
			if e.outdone(workCtx, &rival) {
				end(errGivenWay)
			}
		}
	}
}

func (e *Elector) lead(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leading = on
}

// renew writes the key again. fault.Lost: somebody else leads.
func (e *Elector) renew(ctx context.Context, r Reign) error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Lease/2)
	defer cancel()
	unable := e.unable()
	return e.change(ctx, r, func(l *wire.Lead) { l.Unable = unable })
}

// change rewrites the own key. When the write's answer was lost, or somebody else wrote, the key tells which it was.
func (e *Elector) change(ctx context.Context, r Reign, edit func(*wire.Lead)) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	err := e.rewrite(ctx, r, edit)
	if fault.KindOf(err) != fault.Conflict {
		return err
	}
	if err := e.look(ctx); err != nil {
		return err
	}
	return e.rewrite(ctx, r, edit)
}

func (e *Elector) rewrite(ctx context.Context, r Reign, edit func(*wire.Lead)) error {
	e.mu.Lock()
	next, revision := e.seen, e.revision
	e.mu.Unlock()
	if next.Term != r.Term || next.Instance != e.cfg.Instance {
		return fault.New(fault.Lost, "instance %q leads in term %d", next.Instance, next.Term)
	}
	next.Seq++
	edit(&next)
	return e.write(ctx, next, revision)
}

// release lets another instance take over at once. A failure is of no consequence: the lease ends by itself.
func (e *Elector) release(r Reign) {
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.Lease)
	defer cancel()
	if err := e.change(ctx, r, func(l *wire.Lead) { l.Instance = "" }); err != nil {
		e.log.Debug().Err(err).Msg("lead not released")
	}
}
