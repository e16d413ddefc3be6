package drill

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// trial is one fault being tried.
type trial struct {
	config  *Config
	step    Step
	verdict *Verdict
	watch   *watch
	all     []job.ID // every job that was accepted
	jobs    []job.ID // those that must end in a proof
}

func (t *trial) say(format string, args ...any) {
	t.config.Say(t.step.Name + ": " + fmt.Sprintf(format, args...))
}

// run brings the fault about and looks at what the rack makes of it.
func (t *trial) run(ctx context.Context) {
	t.watch = newWatch(t.config.Connect, t.config.Every, t.config.Answer)
	watching, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.watch.run(watching)
	}()
	defer func() {
		stop()
		<-ended
	}()
	limited, cancel := context.WithTimeout(ctx, t.config.Within)
	defer cancel()
	if t.verdict.Reason = t.strike(limited); t.verdict.Reason != "" || len(t.verdict.Wrong) > 0 {
		return
	}
	if t.step.Empties {
		t.say("submitting again")
		if err := t.submit(limited); err != nil {
			t.verdict.blame("the empty rack takes no job: %s", err)
			return
		}
	}
	t.say("waiting for the jobs to end")
	t.watch.until(limited, func(s *seen) bool { return allEnded(s, t.jobs) })
	t.judgeJobs(limited)
	t.say("waiting for their bytes to be free")
	quiet, cancelQuiet := context.WithTimeout(ctx, t.config.Quiet)
	defer cancelQuiet()
	t.judgeQuiet(quiet)
	t.watch.note(func(s *seen) {
		t.verdict.Wrong = append(t.verdict.Wrong, s.wrong...)
		if shown := s.trace.of(t.step.Name); shown != "" {
			t.verdict.say("seen of it: %s", shown)
		} else {
			t.verdict.blame("nothing was seen of it: what was done did not bring it about, or too short for a look")
		}
		t.verdict.say("%d looks at records, books and nodes; the longest time without an answer was %s", s.samples,
			s.silent.Round(100*time.Millisecond))
	})
}

// strike has jobs running, does, holds and undoes. Reason says why nothing was done.
func (t *trial) strike(ctx context.Context) (reason string) {
	t.say("waiting for the rack to be ready")
	if reason := t.unfit(ctx); reason != "" {
		return "the rack is not fit for it: " + reason
	}
	first := t.step.Stage == job.Waiting // it is there when the jobs come
	if !first {
		if err := t.submit(ctx); err != nil {
			return "no job was accepted: " + err.Error()
		}
		t.say("waiting until a partition is %s", t.step.Stage)
		if !t.reached(ctx) {
			return fmt.Sprintf("no partition was seen %s before all jobs had ended: take a larger input or more jobs",
				t.step.Stage)
		}
	}
	t.verdict.Tried = true
	t.watch.note(func(s *seen) { s.trace.strike(s) })
	t.say("%s", t.step.What)
	defer t.act(context.WithoutCancel(ctx), "undo", t.step.Means.Undo) // whatever happens in between
	if !t.act(ctx, "do", t.step.Means.Do) {
		return ""
	}
	if first {
		if err := t.submit(ctx); err != nil {
			t.verdict.blame("no job was accepted: %s", err)
			return ""
		}
	}
	if t.step.Means.Hold > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(t.step.Means.Hold):
			t.verdict.say("held for %s", t.step.Means.Hold)
		}
	}
	return ""
}

// act does something, and tells whether that went well.
func (t *trial) act(ctx context.Context, what string, a Action) bool {
	if a.Run == nil {
		return true
	}
	said, err := a.Run(ctx)
	if err != nil {
		t.verdict.blame("%s: %s", what, err)
		return false
	}
	if said = strings.ReplaceAll(said, "\n", "; "); said != "" {
		said = ": " + said
	}
	t.verdict.say("%s: %s%s", what, a.Text, said)
	return true
}

// fitWithin is how long a rack may take to be ready for a fault.
const fitWithin = time.Minute

// unfit waits until the rack is ready, and for what empties it until nothing runs or waits. It says what is lacking.
func (t *trial) unfit(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, fitWithin)
	defer cancel()
	reason := "it does not answer"
	t.watch.until(ctx, func(s *seen) bool {
		if s.nodes == nil {
			return false
		}
		if reason = unready(s.nodes); reason != "" || !t.step.Empties {
			return reason == ""
		}
		count := s.nodes.Waiting
		for i := range s.nodes.Nodes {
			count += s.nodes.Nodes[i].Running
		}
		if count > 0 {
			reason = fmt.Sprintf("%d partitions wait or run, and their jobs would be lost", count)
		}
		return count == 0
	})
	return reason
}

// unready says what keeps a rack from being ready; "" for nothing.
func unready(nodes *wire.NodesReply) string {
	if !nodes.Ready {
		return cmp.Or(nodes.Reason, "it is not ready")
	}
	for i := range nodes.Nodes {
		n := &nodes.Nodes[i]
		if !n.Ready && !n.Cordoned && !n.Draining {
			return fmt.Sprintf("node %s is not ready: %s", n.Node, cmp.Or(n.Reason, "no reason is known"))
		}
		for _, d := range n.Devices {
			if d.Quarantined {
				return fmt.Sprintf("device %s of node %s is in quarantine: %s", d.Device, n.Node, d.Reason)
			}
		}
	}
	return ""
}

// connect connects, trying until ctx ends.
func (t *trial) connect(ctx context.Context) (Rack, error) {
	for {
		rack, err := t.config.Connect(ctx)
		if err == nil {
			return rack, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(t.config.Every):
		}
	}
}

// submit has the drill's jobs accepted.
func (t *trial) submit(ctx context.Context) error {
	rack, err := t.connect(ctx)
	if err != nil {
		return err
	}
	defer rack.Close()
	t.jobs = nil
	for range t.config.Jobs {
		id, err := rack.Submit(ctx, "drill-"+uuid.NewString())
		if err != nil {
			return err
		}
		t.jobs, t.all = append(t.jobs, id), append(t.all, id)
		t.watch.follow(id)
	}
	return nil
}

// reached waits until a partition is where the fault strikes.
func (t *trial) reached(ctx context.Context) (there bool) {
	t.watch.until(ctx, func(s *seen) bool {
		for _, id := range t.jobs {
			r := s.records[id]
			there = there || r != nil && slices.ContainsFunc(r.Partitions, func(p job.Partition) bool {
				return p.Stage == t.step.Stage
			})
		}
		return there || allEnded(s, t.jobs)
	})
	return there
}

func allEnded(s *seen, jobs []job.ID) bool {
	return !slices.ContainsFunc(jobs, func(id job.ID) bool {
		r := s.records[id]
		return r == nil || !r.State.Ended()
	})
}

// judgeJobs looks at how the jobs ended (invariants 3 and 4).
func (t *trial) judgeJobs(ctx context.Context) {
	rack, err := t.connect(ctx)
	if err != nil {
		t.verdict.blame("fetch proofs: %s", err)
		return
	}
	defer rack.Close()
	partitions, more := 0, 0
	for _, id := range t.jobs {
		var r *job.Record
		gone := false
		t.watch.note(func(s *seen) { r, gone = s.records[id], s.gone[id] })
		switch {
		case gone:
			t.verdict.blame("job %s was accepted, and the rack does not know it any more", id)
			continue
		case r == nil || !r.State.Ended():
			t.verdict.blame("job %s has not ended within %s", id, t.config.Within)
			continue
		case r.State != job.Done:
			t.verdict.blame("job %s is %s: %s", id, r.State, reasonOf(r))
			continue
		}
		for i := range r.Partitions {
			partitions++
			more += len(r.Partitions[i].Attempts) - 1
		}
		if err := t.checkProof(ctx, rack, r); err != nil {
			t.verdict.blame("proof of job %s: %s", id, err)
		}
	}
	word := "their proofs as the rack verified them"
	if t.config.Verify != nil {
		word = "their proofs verified here, too"
	}
	t.verdict.say(
		"%d jobs with %d partitions, %d attempts beyond the first ones, %s",
		len(t.jobs),
		partitions,
		more,
		word,
	)
}

func reasonOf(r *job.Record) string {
	if r.Fault == nil {
		return "no reason is known"
	}
	return r.Fault.Message
}

// checkProof fetches a proof and looks at it.
func (t *trial) checkProof(ctx context.Context, rack Rack, r *job.Record) error {
	proof, err := rack.Result(ctx, r)
	if err != nil {
		return err
	}
	if want := wire.ProofBytes * len(r.Partitions); len(proof) != want {
		return fault.New(fault.Corrupt, "it has %d bytes, not %d", len(proof), want)
	}
	if t.config.Verify != nil {
		return t.config.Verify(proof)
	}
	return nil
}

// judgeQuiet waits until nothing of the jobs is booked (invariant 2) and the rack is as it was, and looks for dead
// letters.
func (t *trial) judgeQuiet(ctx context.Context) {
	began := time.Now()
	left := ""
	if !t.watch.until(ctx, func(s *seen) bool {
		left = leftOver(s, t.all)
		return left == ""
	}) {
		t.verdict.blame("%s after the last job: %s", time.Since(began).Round(time.Second), left)
		return
	}
	t.verdict.say(
		"nothing of them was booked and every node was ready %s later",
		time.Since(began).Round(100*time.Millisecond),
	)
	rack, err := t.connect(ctx)
	if err != nil {
		t.verdict.blame("look for buffers and dead letters: %s", err)
		return
	}
	defer rack.Close()
	t.judgeBuffers(ctx, rack)
	letters, err := rack.Letters(ctx)
	if err != nil {
		t.verdict.blame("look for dead letters: %s", err)
	}
	for i := range letters {
		if slices.Contains(t.all, letters[i].Job) {
			t.verdict.blame("job %s left a dead letter", letters[i].Job)
		}
	}
}

// leakAfter is how long a buffer has to stay until beats say that it should be gone.
const leakAfter = flight.GraceDefault + 15*time.Second

// judgeBuffers waits until no large buffer is left. Where other jobs have some, it waits until one that should be gone
// would be told.
func (t *trial) judgeBuffers(ctx context.Context, rack Rack) {
	for told := time.Now().Add(leakAfter); ; {
		none, wrong, err := rack.Buffers(ctx)
		if none {
			t.verdict.say("no large buffer was left")
			return
		}
		if ctx.Err() != nil || time.Now().After(told) {
			switch {
			case err != nil:
				t.verdict.blame("look for buffers: %s", err)
			case len(wrong) > 0:
				t.verdict.Wrong = append(t.verdict.Wrong, wrong...)
			default:
				t.verdict.say("no large buffer was left that should be gone; others work, too")
			}
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(t.config.Every):
		}
	}
}

// leftOver says what of the jobs is left, or what the rack lacks; "" for nothing.
func leftOver(s *seen, jobs []job.ID) string {
	if s.nodes == nil || s.books == nil {
		return "the rack does not answer"
	}
	if reason := unready(s.nodes); reason != "" {
		return reason
	}
	for i := range s.books {
		b := &s.books[i]
		if !b.Declared {
			return fmt.Sprintf("the book of node %s is closed", b.Node)
		}
		for _, e := range b.Entries {
			if a, err := job.ParseAttempt(e.Name); err == nil && slices.Contains(jobs, a.Job) {
				return fmt.Sprintf("node %s has %s booked", b.Node, e.Name)
			}
		}
	}
	return ""
}
