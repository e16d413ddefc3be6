package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator/internal/lead"
	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// Points at which tests stop or kill a coordinator (H8).
const (
	PointReserved     = "coordinator.after-reserve"
	PointClaimed      = "coordinator.after-claim"
	PointPublished    = "coordinator.after-publish"
	PointAccepted     = "coordinator.after-accept"
	PointBeforeAck    = "coordinator.before-ack"
	PointResultStored = "coordinator.after-store-result"
	PointRelease      = "coordinator.before-release"
)

// Verifier tells whether proofs hold, as an assemble.Verifier does. An error that may pass is fault.Transient.
type Verifier interface {
	// Partition verifies one partition's proof, Job puts a job's together and verifies them all.
	Partition(ctx context.Context, r *job.Record, partition int, proof []byte) error
	Job(ctx context.Context, r *job.Record) (proof []byte, bad []int, err error)
}

// Parts are what a leader works with.
type Parts struct {
	Bus      bus.Bus
	Store    *store.Store
	Nodes    *rack.Registry
	Ledger   ledger.Ledger
	Verifier Verifier
	Hooks    *hook.Points
	// Meter counts what happens; nil counts nothing.
	Meter *Meter
	Log   zerolog.Logger
	// Tenants are known beside those that have jobs, for the sweep.
	Tenants []job.Tenant
	// Tracer makes spans; nil makes none.
	Tracer *telemetry.Tracer
}

// Leader does the leader's work during one reign. Its fields belong to the loop, unless it says otherwise.
type Leader struct {
	cfg   Config
	parts Parts
	log   zerolog.Logger
	reign lead.Reign

	core  *scheduler.Core
	inbox *inbox
	lanes *lanes

	books  books
	jobs   map[job.ID]*jobState
	tracks map[job.Attempt]*track
	nodes  map[job.Node]*nodeState
	halted string
	// canaries are known answers that devices in quarantine are to prove.
	canaries map[scheduler.Place]*canary
	// deposed ends the loop: another leader has begun.
	deposed error
	learned learned

	// holdUntil is until when no lease ends: after a take-over, and after the ledger was away, leases are renewed
	// first.
	holdUntil          time.Time
	sweptAt, renewedAt time.Time
	sweeping           bool
	// reportsBefore is how many host reports had come when the reign began: those may be from before what earlier leaders
	// did, and prove nothing.
	reportsBefore uint64

	// began is when the reign did.
	began time.Time
	// openings and counts are read by others, too.
	openings                       openings
	late, orphans, badProofs, lost atomic.Int64
}

// jobState is what the loop keeps of a job beyond its record.
type jobState struct {
	// confirmed tells that its key is its own, so that it may start.
	confirmed bool
	// busy counts changes under way whose outcome the scheduler must hear before it sees the record.
	busy int
	// confirming and assembling tell what is under way, retryAt when it is tried again after a failure.
	confirming, assembling, stopping, ending bool
	retryAt                                  time.Time
	// stages are reports that are not in the record yet, by attempt.
	stages map[job.Attempt]stageSeen
	// told are the ends that were published.
	told job.State
	// trouble is why the last result could not be settled, "" when it was.
	trouble string
}

// stageSeen is a stage that an attempt reached, with where its segment lies, "" when that was not said, and why.
type stageSeen struct {
	stage        job.Stage
	handoff, why string
}

// New makes a leader for one reign.
func New(cfg Config, parts Parts, reign lead.Reign) (*Leader, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure leader: %w", err)
	}
	core, err := scheduler.New(cfg.Scheduler)
	if err != nil {
		return nil, err
	}
	l := &Leader{
		cfg: cfg, parts: parts, reign: reign, core: core, inbox: newInbox(),
		log:  parts.Log.With().Uint64("term", reign.Term).Logger(),
		jobs: map[job.ID]*jobState{}, tracks: map[job.Attempt]*track{}, nodes: map[job.Node]*nodeState{},
	}
	l.canaries = map[scheduler.Place]*canary{}
	l.books.of = map[job.Node]*book{}
	return l, nil
}

// Run leads until the context ends, and returns its error. It must be called once.
func (l *Leader) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	l.lanes = newLanes(ctx, l.cfg.Workers)
	defer l.lanes.close()
	defer cancel()
	jobs := l.parts.Store.Follow()
	defer jobs.Close()
	nodes := l.parts.Nodes.Follow()
	defer nodes.Close()
	stopReports, err := l.parts.Bus.Subscribe(wire.AllReports, l.takeReport)
	if err != nil {
		return fmt.Errorf("subscribe to reports: %w", err)
	}
	defer stopReports()
	fetched := make(chan error, 1)
	fetchCtx, stopFetching := context.WithCancel(ctx)
	go func() { fetched <- l.fetchResults(fetchCtx) }()
	defer func() { stopFetching(); <-fetched }()

	now := time.Now()
	l.holdUntil, l.sweptAt, l.began = now.Add(l.cfg.Lease), now, now
	l.reportsBefore = l.parts.Nodes.Reports()
	l.beginLedger() // whose books are read first: a report from before that proves nothing
	ticker := time.NewTicker(l.cfg.Tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-fetched:
			fetched <- nil
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("fetch results: %w", err)
		case <-l.inbox.ready:
			for _, item := range l.inbox.take() {
				item()
			}
		case <-jobs.Ready():
			for _, id := range jobs.Take() {
				l.seeJob(id)
			}
		case <-nodes.Ready():
			for _, name := range nodes.Take() {
				l.seeNode(name)
			}
		case <-ticker.C:
			l.tick(time.Now())
		}
		if l.deposed != nil {
			return fmt.Errorf("lead in term %d: %w", l.reign.Term, l.deposed)
		}
	}
}

// Ask runs a function in the loop, where all state may be read, and waits for it. It is how others look in; a loop that
// has ended gives fault.Transient.
func (l *Leader) Ask(ctx context.Context, look func()) error {
	done := make(chan struct{})
	l.inbox.post(func() {
		look()
		close(done)
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fault.As(fault.Transient, fmt.Errorf("ask the leader: %w", context.Cause(ctx)))
	}
}

// apply gives the scheduler an event and carries out what it decides.
func (l *Leader) apply(event scheduler.Event) {
	for _, decision := range l.core.Apply(time.Now(), event) {
		l.log.Debug().Stringer("decision", decision).Msg("scheduler decided")
		switch d := decision.(type) {
		case *scheduler.Admit:
			l.admit(d)
		case *scheduler.Release:
			l.release(d.Node, d.Attempt)
		case *scheduler.Evict:
			l.evict(d)
		case *scheduler.Refresh:
			l.refresh(d.Node)
		case *scheduler.Quarantine:
			l.quarantine(d)
		case *scheduler.Halt:
			l.halted = d.Reason
			l.log.Error().Str("reason", d.Reason).Msg("nothing is admitted: most devices fail")
		case *scheduler.Unhalt:
			l.halted = ""
			l.log.Info().Msg("devices work again, admission goes on")
		case *scheduler.Drifted:
			l.sizeDrifted(d)
		default:
			panic(fmt.Sprintf("dispatch: unknown decision %T", decision))
		}
	}
}

// call bounds one slow call.
func (l *Leader) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.cfg.CallTimeout)
}

// job gives the state of a job, made when it is new.
func (l *Leader) job(id job.ID) *jobState {
	s := l.jobs[id]
	if s == nil {
		s = &jobState{stages: map[job.Attempt]stageSeen{}}
		l.jobs[id] = s
	}
	return s
}

// owns tells whether an attempt owns its partition, by the record as it was last seen, and gives that record.
func (l *Leader) owns(a job.Attempt) (store.Job, bool) {
	j, ok := l.parts.Store.Get(a.Job)
	if !ok {
		return store.Job{}, false
	}
	return j, owns(j.Record, a)
}

// ownsOn tells whether an attempt owns its partition and works on a node. A reservation on another node than the
// record's is nobody's: its Reserve had its effect after it was given up, and the attempt was admitted elsewhere.
func (l *Leader) ownsOn(a job.Attempt, node job.Node) (store.Job, bool) {
	j, ok := l.owns(a)
	return j, ok && j.Record.Partitions[a.Partition].Node == node
}

func owns(r *job.Record, a job.Attempt) bool {
	if r.State != job.Active || a.Partition < 0 || a.Partition >= len(r.Partitions) {
		return false
	}
	p := &r.Partitions[a.Partition]
	return p.Fence == a.Fence && p.Stage.Running()
}

// transient tells whether a call may go well later: the part was away, or the call's time was over. What it did is
// unknown.
func transient(err error) bool {
	switch fault.KindOf(err) {
	case fault.Transient, fault.Cancelled:
		return !closed(err)
	default:
		return errors.Is(err, context.DeadlineExceeded)
	}
}

// closed tells whether the ledger answered that a node's book is closed until the node declares what it holds.
func closed(err error) bool {
	var refusal *ledger.Refusal
	return errors.As(err, &refusal) && refusal.Closed != ""
}

// laneOfJob and laneOfNode name lanes.
func laneOfJob(id job.ID) string      { return "job " + string(id) }
func laneOfNode(name job.Node) string { return "node " + string(name) }
