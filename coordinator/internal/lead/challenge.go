package lead

import (
	"context"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/wire"
)

// A leader that is unable says so in its key. An able instance that reads that writes the key wire.LeadChallengeKey,
// and goes on doing so; the leader, when it sees that key change, releases the lead. One that nobody challenges leads
// on: half of a leader's work is better than none.

// errGivenWay says that the lead went to an instance that can do more.
var errGivenWay = fault.New(fault.Lost, "gave way to an instance that is able")

// unable is why this instance could not do all of a leader's work.
func (e *Elector) unable() string {
	if e.cfg.Unable == nil {
		return ""
	}
	why := e.cfg.Unable()
	e.mu.Lock()
	defer e.mu.Unlock()
	if why != e.told {
		e.told = why
		if why != "" {
			e.log.Warn().Str("reason", why).Msg("this coordinator cannot do all of a leader's work: others go first")
		} else {
			e.log.Info().Msg("this coordinator can do all of a leader's work now")
		}
	}
	return why
}

// challenge tells a leader that is unable that this instance could lead.
func (e *Elector) challenge(ctx context.Context) {
	e.mu.Lock()
	leader := e.seen
	e.mu.Unlock()
	if leader.Unable == "" || leader.Instance == "" || leader.Instance == e.cfg.Instance || e.unable() != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Lease/2)
	defer cancel()
	revision, err := e.challenged(ctx)
	if err == nil && revision == 0 {
		_, err = e.kv.Create(ctx, wire.LeadChallengeKey, []byte(e.cfg.Instance))
	} else if err == nil {
		_, err = e.kv.Update(ctx, wire.LeadChallengeKey, []byte(e.cfg.Instance), revision)
	}
	if err != nil && fault.KindOf(err) != fault.Conflict {
		e.log.Debug().Err(err).Msg("leader not challenged")
	}
}

// challenged is the revision of the challenge, 0 when there is none.
func (e *Elector) challenged(ctx context.Context) (uint64, error) {
	entry, err := e.kv.Get(ctx, wire.LeadChallengeKey)
	if fault.KindOf(err) == fault.NotFound {
		return 0, nil
	}
	return entry.Revision, err
}

// rival is the last challenge that a leader has seen since it is unable.
type rival struct {
	noted    bool
	revision uint64
}

// outdone tells whether this leader is unable and an instance that is able is there.
func (e *Elector) outdone(ctx context.Context, r *rival) bool {
	if e.unable() == "" {
		*r = rival{}
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, min(e.cfg.Lease/8, time.Second))
	defer cancel()
	revision, err := e.challenged(ctx)
	if err != nil {
		return false
	}
	if !r.noted { // who wrote this may have gone long ago
		*r = rival{true, revision}
		return false
	}
	return revision != r.revision
}
