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
// later (others go first). An error of work that has a method SeenTerm tells that a higher term was in use elsewhere:
// the key began anew with its store, and the next reign's term is above that one. Run returns the context's error.
func (e *Elector) Run(ctx context.Context, work func(context.Context, Reign) error) error {
	poll := time.NewTicker(e.cfg.Lease / 4)
	defer poll.Stop()
	var pauseUntil time.Time
	for {
		if err := e.look(ctx); err != nil && ctx.Err() == nil {
			e.log.Debug().Err(err).Msg("leader unknown")
		} else if e.due(time.Now()) && time.Now().After(pauseUntil) {
			reign, sentAt, err := e.take(ctx)
			switch {
			case err == nil:
				if err := e.reign(ctx, reign, sentAt, work); err != nil && ctx.Err() == nil {
					e.raise(err)
					e.log.Warn().Err(err).Uint64("term", reign.Term).Msg("lead given up")
				}
				pauseUntil = time.Now().Add(e.cfg.Lease)
			case ctx.Err() == nil && fault.KindOf(err) != fault.Conflict:
				e.log.Warn().Err(err).Msg("lead not taken")
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
}

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

func (e *Elector) saw(l wire.Lead, revision uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if revision != e.revision || e.seenAt.IsZero() {
		e.seen, e.revision, e.seenAt = l, revision, time.Now()
	}
}

// due tells whether nobody leads. The longer of both leases counts, so coordinators may be set differently.
func (e *Elector) due(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.revision == 0 || e.seen.Instance == "" {
		return true
	}
	return now.Sub(e.seenAt) > max(e.seen.Lease, e.cfg.Lease)
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

	deadline := time.AfterFunc(time.Until(sentAt.Add(e.cfg.Lease)), func() {
		end(fault.New(fault.Lost, "lead not renewed for %s", e.cfg.Lease))
	})
	defer deadline.Stop()
	renew := time.NewTicker(e.cfg.Lease / 4)
	defer renew.Stop()
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
			if ctx.Err() != nil {
				e.release(r)
				return err
			}
			return context.Cause(workCtx)
		case <-renew.C:
			sentAt := time.Now()
			switch err := e.renew(workCtx, r); {
			case err == nil:
				deadline.Reset(time.Until(sentAt.Add(e.cfg.Lease)))
			case fault.KindOf(err) == fault.Lost:
				end(err)
			default:
				e.log.Debug().Err(err).Msg("lead not renewed")
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
	return e.change(ctx, r, func(*wire.Lead) {})
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
