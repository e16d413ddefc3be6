package dispatch

import (
	"maps"
	"slices"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/metrics"
	"github.com/proofrack/proofrack/shared/wire"
)

// Meter counts what leaves no truth behind that a scrape could read: ends of attempts and jobs. One outlives the reigns
// of its coordinator. Its methods may be called on nil, and from several goroutines.
type Meter struct {
	attempts, retries, bad, blamed, late, fences, jobs *metrics.Tally
	stages, took                                       *metrics.Times
}

// NewMeter makes one that a registry shows.
func NewMeter(r *metrics.Registry) *Meter {
	each := func(values ...string) (out [][]string) {
		for _, v := range values {
			out = append(out, []string{v})
		}
		return out
	}
	failed, lost, back := string(job.OutcomeFailed), string(job.OutcomeLost), string(job.OutcomeHandedBack)
	return &Meter{
		attempts: r.Tally(metrics.AttemptsEnded,
			each(string(job.OutcomeOK), failed, lost, back, string(job.OutcomeCancelled))...),
		retries: r.Tally(metrics.Retries, each(failed, lost, back)...),
		bad:     r.Tally(metrics.BadProofs),
		blamed:  r.Tally(metrics.DeviceFaults),
		late:    r.Tally(metrics.ResultsLate),
		fences:  r.Tally(metrics.FencesRefused),
		jobs:    r.Tally(metrics.JobsEnded, each(string(job.Done), string(job.Failed), string(job.Cancelled))...),
		stages:  r.Times(metrics.StageSeconds),
		took:    r.Times(metrics.JobSeconds),
	}
}

// stagesMax bounds the stages that one result is believed to have had.
const stagesMax = secondsMax

// attempt counts the end of an attempt; again tells that its partition is tried again.
func (m *Meter) attempt(outcome job.Outcome, r *job.Record, partition int) {
	if m == nil {
		return
	}
	m.attempts.Inc(string(outcome))
	if r == nil || r.State != job.Active || r.Partitions[partition].Stage != job.Waiting {
		return
	}
	switch outcome {
	case job.OutcomeFailed, job.OutcomeLost, job.OutcomeHandedBack:
		m.retries.Inc(string(outcome))
	case job.OutcomeOK, job.OutcomeCancelled:
	}
}

// result counts what a result tells of its attempt.
func (m *Meter) result(result *wire.Result, ended *scheduler.Ended, r *job.Record) {
	if m == nil {
		return
	}
	m.attempt(ended.Outcome, r, result.Attempt.Partition)
	if r == nil {
		return
	}
	if last := r.Partitions[result.Attempt.Partition].Last(); ended.BlameDevice && last != nil {
		m.blamed.Inc(string(last.Node), string(last.Device))
	}
	if ended.Outcome != job.OutcomeOK {
		return
	}
	names := slices.Sorted(maps.Keys(result.Seconds))
	for _, name := range names[:min(len(names), stagesMax)] {
		m.stages.Observe(result.Seconds[name], r.Circuit, name)
	}
}

// badProof counts a proof that did not verify here.
func (m *Meter) badProof(node job.Node, device job.Device) {
	if m != nil {
		m.bad.Inc(string(node), string(device))
	}
}

// lateResult counts a result of a stale attempt.
func (m *Meter) lateResult() {
	if m != nil {
		m.late.Inc()
		m.fences.Inc()
	}
}

// job counts the end of a job.
func (m *Meter) job(r *job.Record) {
	if m == nil {
		return
	}
	m.jobs.Inc(string(r.State))
	if r.State == job.Done && r.EndedAt != nil {
		m.took.Observe(max(0, r.EndedAt.Sub(r.SubmittedAt)).Seconds(), r.Circuit)
	}
}
