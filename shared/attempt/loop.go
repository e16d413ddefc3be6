package attempt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// Task is one message's work.
type Task interface {
	Attempt() job.Attempt
	// Target is the node and the device that it is meant for.
	Target() (job.Node, job.Device)
	// Stage is the stage that it begins in.
	Stage() job.Stage
	TraceParent() string
	// Work does it. Its context ends when the run is cancelled, the cause says why. The error decides the outcome; nil
	// means that the task is handed on or its result was given to Run.Settle.
	Work(ctx context.Context, r *Run) error
}

// Worker is what the loops of one process share.
type Worker struct {
	Config Config
	Bus    bus.Bus
	Fences *Fences
	Board  *Board
	Gate   *Gate
	// Finishes tells that its tasks were begun by others of the node: while it drains it goes on with them, and new ones
	// end with the others' drain.
	Finishes bool
	// Notes are reasons for not being ready that do not keep the worker from fetching: what it fetches it hands back.
	Notes  *Gate
	Outbox *Outbox
	// Marks count deaths at work; nil counts none.
	Marks *Marks
	Node  job.Node
	Build string
	Log   zerolog.Logger
	// Ended is told how each attempt ended here: an outcome, or OutcomeStale; nil is told nothing.
	Ended func(outcome string)
	// Tracer makes spans of the work; nil makes none.
	Tracer *telemetry.Tracer
}

// Source is where a loop gets its tasks.
type Source struct {
	Consumer bus.Consumer
	// Slots is how many tasks it holds at once.
	Slots int
	// Gate is one of this source alone, beside the worker's; nil for none.
	Gate *Gate
	// Decode reads a message; its error is of kind Invalid.
	Decode func(data []byte) (Task, error)
	// Left gives the attempts that dead workers of the node left half done and that can go on without their messages,
	// which come again later and join; nil for none.
	Left func(ctx context.Context) ([]Task, error)
}

// loop is a running one.
type loop struct {
	*Worker

	source Source
	slots  chan struct{}
	wg     sync.WaitGroup
}

// Serve fetches and works until c says Stopping, then lets what runs finish; when c says HandingBack runs are cancelled
// with ErrHandBack. It returns when nothing of it is left, with nil, or the error for which the queue cannot be opened.
func (w *Worker) Serve(ctx context.Context, c *service.Control, source Source) error {
	l := &loop{Worker: w, source: source, slots: make(chan struct{}, source.Slots)}
	fetching, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-c.Stopping():
			stop()
		case <-ended:
		}
	}()
	go func() {
		select {
		case <-c.HandingBack():
			w.Board.CancelAll(ErrHandBack)
		case <-ended:
		}
	}()
	if source.Left != nil {
		l.wg.Go(func() { l.takeUp(ctx, fetching) })
	}
	err := l.fetchAll(ctx, fetching)
	stop()
	l.wg.Wait()
	return err
}

// fetchAll opens the queue, as often as it takes, and fetches until fetching ends.
func (l *loop) fetchAll(ctx, fetching context.Context) error {
	pause, note := l.Config.RetryMin, "queue "+l.source.Consumer.Name
	for {
		queue, err := l.Bus.Queue(fetching, l.source.Consumer)
		if err == nil {
			pause = l.Config.RetryMin
			l.Notes.Set(note, "")
			err = l.fetch(ctx, fetching, queue)
		}
		if fetching.Err() != nil {
			return nil //nolint:nilerr // it was asked to end
		}
		if kind := fault.KindOf(err); kind == fault.Invalid || kind == fault.Conflict {
			return fmt.Errorf("open queue %s: %w", l.source.Consumer.Subject, err)
		}
		if fault.KindOf(err) == fault.NotFound { // so it is at the start, until a coordinator has heard of this worker
			l.Notes.Set(note, "waits for a coordinator to make "+note)
		}
		l.Log.Warn().Err(err).Str("subject", l.source.Consumer.Subject).Dur("pause", pause).
			Msg("queue is not to be had, trying again")
		if pause, err = rest(fetching, l.Bus, &l.Config, pause); err != nil {
			return nil //nolint:nilerr // it was asked to end
		}
	}
}

// fetch hands one message to each free slot while the gate is open.
func (l *loop) fetch(ctx, fetching context.Context, queue bus.Queue) error {
	for {
		select {
		case l.slots <- struct{}{}:
		case <-fetching.Done():
			return fetching.Err()
		}
		d, err := l.fetchOne(fetching, queue)
		if err != nil || d == nil {
			<-l.slots
			if err != nil {
				return err
			}
			continue
		}
		l.wg.Go(func() {
			defer func() { <-l.slots }()
			l.handle(ctx, d)
		})
	}
}

// fetchOne waits for one message; it gives none when a gate closed meanwhile.
func (l *loop) fetchOne(fetching context.Context, queue bus.Queue) (bus.Delivery, error) {
	gates := []*Gate{l.Gate}
	if l.source.Gate != nil {
		gates = append(gates, l.source.Gate)
	}
	open := fetching
	for _, gate := range gates {
		select {
		case <-gate.Opened():
		case <-fetching.Done():
			return nil, fetching.Err()
		}
		var cancel context.CancelFunc
		open, cancel = gate.WhileOpen(open)
		defer cancel()
	}
	d, err := queue.Fetch(open)
	shut := slices.ContainsFunc(gates, func(g *Gate) bool { return g.Reasons() != "" })
	switch {
	case err == nil && (shut || fetching.Err() != nil): // it came at the moment when nothing more should
		ctx, cancel := context.WithTimeout(l.Outbox.life, tryMax)
		defer cancel()
		if err := d.Nak(ctx, 0); err != nil {
			l.Log.Debug().Err(err).Msg("message was not put back, it will come again")
		}
		return nil, fetching.Err()
	case err != nil && open.Err() != nil:
		return nil, fetching.Err()
	}
	return d, err
}

// handle takes one delivery to its end.
func (l *loop) handle(ctx context.Context, d bus.Delivery) {
	task, err := l.source.Decode(d.Message().Data)
	if err == nil {
		err = l.checkTarget(task)
	}
	if err != nil {
		l.refuse(d, err)
		return
	}
	l.run(ctx, task, d)
}

// run takes one task to its end, unless that is under way or done here.
func (l *loop) run(ctx context.Context, task Task, d bus.Delivery) {
	runCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, known := l.Board.claim(task.Attempt(), task.Stage(), d, cancel)
	if known {
		if r == nil { // it ended here
			l.Outbox.Put(bus.Message{ID: task.Attempt().String()}, d.Ack)
		}
		return
	}
	r.loop, r.task = l, task
	l.follow(r, d)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		l.keep(runCtx, r)
	}()
	err := l.begin(runCtx, r)
	if err == nil {
		err = l.work(runCtx, r)
	}
	if cause := context.Cause(runCtx); cause != nil && err != nil && fault.KindOf(err) != fault.Lost {
		err = fmt.Errorf("%w (%w)", cause, err)
	}
	cancel(nil)
	<-kept
	l.settle(ctx, r, err)
}

// checkTarget refuses tasks for somebody else: subjects are pinned by permissions, bodies are not.
func (l *loop) checkTarget(task Task) error {
	if node, _ := task.Target(); node != l.Node {
		return fault.New(fault.Invalid, "attempt %s is for node %s, this is %s", task.Attempt(), node, l.Node)
	}
	return nil
}

// rawBytesMax bounds what is kept of a message that is no task.
const rawBytesMax = 64 << 10

// refuse ends a message that cannot be worked on: once, for good, with its bytes kept for people (B01).
func (l *loop) refuse(d bus.Delivery, err error) {
	m := d.Message()
	l.Log.Error().Err(err).Str("subject", m.Subject).Int("bytes", len(m.Data)).
		Msg("message is no task, it is not tried again")
	ctx, cancel := context.WithTimeout(l.Outbox.life, tryMax)
	defer cancel()
	letter := bus.Message{
		Subject: wire.DLQSubject(wire.DLQMessages), ID: m.ID, Data: m.Data[:min(len(m.Data), rawBytesMax)],
		Header: map[string]string{
			wire.HeaderDeadSubject: m.Subject, wire.HeaderDeadReason: fault.ReportOf("fetch", err).Message,
		},
	}
	if _, err := l.Bus.Publish(ctx, letter); err != nil {
		l.Log.Warn().Err(err).Msg("dead letter was not stored")
	}
	if err := d.Term(ctx, "not a task"); err != nil {
		l.Log.Warn().Err(err).Msg("message was not terminated, it will come again")
	}
}

// begin compares the fence; while nobody can be asked it waits.
func (l *loop) begin(ctx context.Context, r *Run) error {
	pause := l.Config.RetryMin
	for {
		err := l.Fences.Check(ctx, r.attempt)
		if !errors.Is(err, errUnknown) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.Step() // waiting for the bus is no stall
		if pause, err = rest(ctx, l.Bus, &l.Config, pause); err != nil {
			return err
		}
	}
}

// keep marks the message as in progress while the work advances and gives up what does not.
func (l *loop) keep(ctx context.Context, r *Run) {
	ticker := time.NewTicker(max(time.Millisecond, min(l.Config.KeepEvery, l.Config.StallMax/2)))
	defer ticker.Stop()
	last, moved := r.Progress(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			progress := r.Progress()
			if progress == last {
				if now.Sub(moved) > l.Config.StallMax {
					r.cancel(fmt.Errorf("attempt %s: %w for %s", r.attempt, ErrStalled, l.Config.StallMax))
					return
				}
				continue
			}
			last, moved = progress, now
			limited, cancel := context.WithTimeout(ctx, l.Config.KeepEvery)
			if err := r.current().InProgress(limited); err != nil {
				l.Log.Debug().Err(err).Stringer("attempt", r.attempt).Msg("message was not kept")
			}
			cancel()
		}
	}
}

// settle records the outcome of a run and acknowledges its message.
func (l *loop) settle(ctx context.Context, r *Run, err error) {
	r.followed(err)
	ack := func(ctx context.Context) error { return r.current().Ack(ctx) }
	verdict := Verdict{}
	if err != nil {
		verdict = Judge(err)
		l.Log.Warn().Err(err).Stringer("attempt", r.attempt).Str("kind", string(fault.KindOf(err))).
			EmbedObject(telemetry.InTrace(r.task.TraceParent())).
			Str("outcome", string(verdict.Outcome)).Msg("attempt ended without success")
	}
	l.tell(err, verdict)
	var letter bus.Message
	if verdict.Outcome != "" {
		result := wire.Result{
			Outcome: verdict.Outcome, BlameDevice: verdict.Blame, Fault: fault.ReportOf(string(r.stageNow()), err),
		}
		letter = r.letter(&result)
	}
	done := l.Outbox.Put(letter, ack)
	r.wait(ctx, done)
	l.Board.end(r, err == nil || verdict.Outcome != "")
}

// OutcomeStale is the outcome of an attempt whose fence was refused, or that was stopped because it was raised.
const OutcomeStale = "stale"

// tell tells how an attempt ended.
func (l *loop) tell(err error, verdict Verdict) {
	if l.Ended == nil {
		return
	}
	switch {
	case err == nil:
		l.Ended(string(job.OutcomeOK))
	case verdict.Outcome == "":
		l.Ended(OutcomeStale)
	default:
		l.Ended(string(verdict.Outcome))
	}
}

// wait waits for a letter, but not for long.
func (r *Run) wait(ctx context.Context, done <-chan struct{}) {
	timer := time.NewTimer(r.loop.Config.SettleMax)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// letter completes a result and makes it a message.
func (r *Run) letter(result *wire.Result) bus.Message {
	result.Attempt, result.Node, result.Build = r.attempt, r.loop.Node, r.loop.Build
	_, result.Device = r.task.Target()
	result.TraceParent = r.task.TraceParent()
	if result.Handoff == "" {
		result.Handoff, result.HandoffReason = r.Handoff()
	}
	data, err := wire.Encode(result)
	if err != nil {
		panic(fmt.Sprintf("attempt: result of %s: %v", r.attempt, err)) // made here from checked parts
	}
	return bus.Message{Subject: wire.ResultSubject(r.loop.Node), ID: result.ID(), Data: data, Header: r.header()}
}

// Settle gives the result of a success to the outbox and waits until it is stored, but not longer than SettleMax.
func (r *Run) Settle(ctx context.Context, result *wire.Result) {
	letter := r.letter(result)
	r.tracedSend(letter.Subject, letter.ID, len(letter.Data))
	r.wait(ctx, r.loop.Outbox.Put(letter, nil))
}

// CheckFence compares the fence of a running attempt: only a raised one is an error (kind Lost).
func (r *Run) CheckFence(ctx context.Context) error {
	err := r.loop.Fences.Check(ctx, r.attempt)
	if errors.Is(err, errUnknown) {
		return ctx.Err()
	}
	return err
}

// Publish stores a message in a stream, as often as it takes, until the run is cancelled. Waiting for the bus is no
// stall. Errors: kinds other than Transient, NotFound (the stream is not set up yet), Exhausted, and Invalid, which
// would end the job; the context's.
func (r *Run) Publish(ctx context.Context, m bus.Message) error {
	m.Header = r.header()
	r.tracedSend(m.Subject, m.ID, len(m.Data))
	pause := r.loop.Config.RetryMin
	for {
		limited, cancel := context.WithTimeout(ctx, tryMax)
		_, err := r.loop.Bus.Publish(limited, m)
		cancel()
		switch kind := fault.KindOf(err); {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case kind == fault.Invalid: // a right or a limit that is missing here: no input is wrong for that
			return fault.As(fault.Internal, fmt.Errorf("publish %s: %w", m.Subject, err))
		case kind != fault.Transient && kind != fault.NotFound && kind != fault.Exhausted:
			return fmt.Errorf("publish %s: %w", m.Subject, err)
		}
		r.Step()
		if pause, err = rest(ctx, r.loop.Bus, &r.loop.Config, pause); err != nil {
			return err
		}
	}
}

// Enter tells the coordinator that a stage is reached, at most once: beats repair what is lost.
func (r *Run) Enter(ctx context.Context, stage job.Stage) {
	r.mu.Lock()
	r.stage = stage
	r.mu.Unlock()
	r.Step()
	report := wire.Report{Stage: stage}
	report.Handoff, report.HandoffReason = r.Handoff()
	r.report(ctx, report)
	r.board.changed()
}

// Freed tells that all bytes of the attempt are gone.
func (r *Run) Freed(ctx context.Context) {
	r.report(context.WithoutCancel(ctx), wire.Report{Freed: true})
}

func (r *Run) report(ctx context.Context, report wire.Report) {
	report.Attempt, report.Node = r.attempt, r.loop.Node
	data, err := wire.Encode(&report)
	if err != nil {
		panic(fmt.Sprintf("attempt: report of %s: %v", r.attempt, err)) // made here from checked parts
	}
	ctx, cancel := context.WithTimeout(ctx, r.loop.Config.KeepEvery)
	defer cancel()
	if err := r.loop.Bus.Send(ctx, bus.Message{Subject: wire.ReportSubject(r.loop.Node), Data: data}); err != nil {
		r.loop.Log.Debug().Err(err).Stringer("attempt", r.attempt).Msg("report was not sent")
	}
}

func (r *Run) stageNow() job.Stage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stage
}
