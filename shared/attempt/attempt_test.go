package attempt_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	id   = job.ID("01890a5d-ac96-774b-bcce-b302099a8057")
	node = job.Node("n1")
)

func try(fence uint64) job.Attempt { return job.Attempt{Job: id, Fence: fence} }

// bench is a worker on a fake bus whose work is a function.
type bench struct {
	t      *testing.T
	bus    *fakeBus
	worker *attempt.Worker
	work   func(context.Context, *attempt.Run) error
	works  atomic.Int32
	ctl    *service.Control
	done   chan error
}

type benchTask struct {
	bench   *bench
	attempt job.Attempt
	node    job.Node
}

func (t *benchTask) Attempt() job.Attempt           { return t.attempt }
func (t *benchTask) Target() (job.Node, job.Device) { return t.node, "d1" }
func (t *benchTask) Stage() job.Stage               { return job.Reserved }
func (t *benchTask) TraceParent() string            { return "trace" }

func (t *benchTask) Work(ctx context.Context, r *attempt.Run) error {
	t.bench.works.Add(1)
	return t.bench.work(ctx, r)
}

// start runs a loop in a synctest bubble; end must follow.
func start(t *testing.T, slots int, work func(context.Context, *attempt.Run) error) *bench {
	t.Helper()
	b := &bench{t: t, bus: newFakeBus(), work: work, ctl: service.NewControl(), done: make(chan error, 1)}
	b.bus.setFence(id, 1)
	config, log := attempt.DefaultConfig(), zerolog.Nop()
	b.worker = &attempt.Worker{
		Config: config, Bus: b.bus,
		Fences: attempt.NewFences(fakeKV{bus: b.bus}, func() bool { return true }, time.Second),
		Board:  attempt.NewBoard(func() {}), Gate: attempt.NewGate(func() {}), Notes: attempt.NewGate(func() {}),
		Outbox: attempt.NewOutbox(t.Context(), b.bus, config, "", -1, log), Node: node,
		Build: "test", Log: log,
	}
	go func() {
		b.done <- b.worker.Serve(t.Context(), b.ctl, attempt.Source{Slots: slots, Decode: b.decode})
	}()
	return b
}

// A worker whose tasks were begun by another one of the node goes on with them while it drains: what is sealed is
// proved, not thrown away.
func TestBegunWorkIsFinishedWhileDraining(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := start(t, 1, func(ctx context.Context, r *attempt.Run) error { r.Settle(ctx, okResult()); return nil })
		b.worker.Finishes = true
		quiet, err := b.worker.Obey(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer quiet()
		data, err := wire.Encode(&wire.Control{Node: node, Kind: wire.ControlDrain, Reason: "repair"})
		if err != nil {
			t.Fatal(err)
		}
		b.bus.orders(bus.Message{Data: data})
		if state, reason := b.worker.State(); state != wire.StateDraining || !strings.Contains(reason, "repair") {
			t.Errorf("state %s: %s", state, reason)
		}
		d := b.put(try(1))
		<-d.end
		if got := b.results(); len(got) != 1 || got[0].Outcome != job.OutcomeOK {
			t.Errorf("results %+v", got)
		}
		if data, err = wire.Encode(&wire.Control{Node: node, Kind: wire.ControlUndrain}); err != nil {
			t.Fatal(err)
		}
		b.bus.orders(bus.Message{Data: data})
		if state, reason := b.worker.State(); state != wire.StateReady {
			t.Errorf("state %s after the drain: %s", state, reason)
		}
		b.end()
	})
}

func (b *bench) decode(data []byte) (attempt.Task, error) {
	t := &benchTask{bench: b, node: node}
	if err := json.Unmarshal(data, &t.attempt); err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	if strings.Contains(string(data), "elsewhere") {
		t.node = "n2"
	}
	return t, nil
}

func (b *bench) put(a job.Attempt) *fakeDelivery {
	data, err := json.Marshal(a)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.bus.put(data)
}

func (b *bench) end() {
	b.t.Helper()
	b.ctl.Stop(service.Drain, "test ends")
	if err := <-b.done; err != nil {
		b.t.Errorf("serve: %v", err)
	}
	b.worker.Outbox.Wait()
}

// results are the published ones, decoded.
func (b *bench) results() []wire.Result {
	b.t.Helper()
	var all []wire.Result
	for _, m := range b.bus.messages(wire.ResultSubject(node)) {
		var r wire.Result
		if err := wire.Decode(m.Data, &r); err != nil {
			b.t.Fatal(err)
		}
		if m.ID != r.ID() {
			b.t.Errorf("message id %s of result %s", m.ID, r.ID())
		}
		all = append(all, r)
	}
	return all
}

func (b *bench) wantSettled(d *fakeDelivery, how string) {
	b.t.Helper()
	if got, _ := d.state(); got != how {
		b.t.Errorf("delivery is settled by %q, want %q", got, how)
	}
}

func okResult() *wire.Result {
	return &wire.Result{Outcome: job.OutcomeOK, Proof: make([]byte, wire.ProofBytes)}
}

func TestJudgeKnowsEveryKind(t *testing.T) {
	t.Parallel()
	failed, handedBack := attempt.Verdict{Outcome: job.OutcomeFailed}, attempt.Verdict{Outcome: job.OutcomeHandedBack}
	want := map[fault.Kind]attempt.Verdict{
		fault.Invalid: failed, fault.Conflict: failed, fault.NotFound: failed, fault.Corrupt: failed,
		fault.Transient: failed, fault.Internal: failed, fault.Device: {Outcome: job.OutcomeFailed, Blame: true},
		fault.Exhausted: handedBack, fault.Cancelled: handedBack, fault.Lost: {},
	}
	got := map[fault.Kind]attempt.Verdict{}
	for _, kind := range fault.Kinds() {
		got[kind] = attempt.Judge(fault.New(kind, "x"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAttemptIsWorkedOnSettledAndAcknowledged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := start(t, 1, func(ctx context.Context, r *attempt.Run) error {
			r.Enter(ctx, job.Proving)
			r.Settle(ctx, okResult())
			r.Freed(ctx)
			return nil
		})
		d := b.put(try(1))
		<-d.end
		b.end()
		b.wantSettled(d, "ack")
		got := b.results()
		if len(got) != 1 || got[0].Attempt != try(1) || got[0].Outcome != job.OutcomeOK || got[0].Node != node ||
			got[0].Device != "d1" || got[0].Build != "test" {
			t.Errorf("results %+v", got)
		}
		var reports []wire.Report
		for _, m := range b.bus.sent {
			var r wire.Report
			if err := wire.Decode(m.Data, &r); err != nil {
				t.Fatal(err)
			}
			reports = append(reports, r)
		}
		want := []wire.Report{{Attempt: try(1), Node: node, Stage: job.Proving}, {Attempt: try(1), Node: node, Freed: true}}
		if diff := cmp.Diff(want, reports); diff != "" {
			t.Error(diff)
		}
	})
}

func TestErrorsBecomeOutcomes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want job.Outcome
	}{
		"bad input": {fault.New(fault.Invalid, "bad input"), job.OutcomeFailed},
		"device":    {fault.New(fault.Device, "engine crashed"), job.OutcomeFailed},
		"veto":      {fault.New(fault.Exhausted, "no room"), job.OutcomeHandedBack},
		"stale":     {job.ErrStale, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := start(t, 1, func(context.Context, *attempt.Run) error { return c.err })
				d := b.put(try(1))
				<-d.end
				b.end()
				b.wantSettled(d, "ack")
				got := b.results()
				if c.want == "" {
					if len(got) != 0 {
						t.Errorf("results %+v", got)
					}
					return
				}
				if len(got) != 1 || got[0].Outcome != c.want || got[0].Fault.Message != c.err.Error() ||
					got[0].BlameDevice != (name == "device") {
					t.Errorf("results %+v", got)
				}
			})
		})
	}
}

// B01, second part: what is put straight on the queue and is no task is tried once and never again.
func TestB01MessageThatIsNoTaskIsTriedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := start(t, 1, func(context.Context, *attempt.Run) error { return nil })
		elsewhere := b.bus.put([]byte(`{"job":"` + string(id) + `","fence":1,"x":"elsewhere"}`))
		d := b.bus.put([]byte("{}x"))
		<-d.end
		<-elsewhere.end
		b.end()
		b.wantSettled(d, "term")
		b.wantSettled(elsewhere, "term")
		if b.works.Load() != 0 {
			t.Error("it was worked on")
		}
		letters := b.bus.messages(wire.DLQSubject("message"))
		if len(letters) != 1 || letters[0].Header["Reason"] == "" { // the fake has one id for both
			t.Errorf("dead letters %+v", letters)
		}
	})
}

// Invariant 5: a stale attempt is not worked on.
func TestStaleAttemptsAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := start(t, 1, func(context.Context, *attempt.Run) error { return nil })
		b.bus.setFence(id, 2)
		stale := b.put(try(1))
		<-stale.end
		orphan := b.put(job.Attempt{Job: "01890a5d-ac96-774b-bcce-b302099a8058", Fence: 1}) // B37: its record is gone
		<-orphan.end
		b.end()
		b.wantSettled(stale, "ack")
		b.wantSettled(orphan, "ack")
		if b.works.Load() != 0 || len(b.results()) != 0 {
			t.Errorf("worked %d times, results %+v", b.works.Load(), b.results())
		}
	})
}

func TestUnknownFenceWaitsBeforeTheStartAndNotAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		b := start(t, 1, func(ctx context.Context, r *attempt.Run) error {
			<-goOn
			return r.CheckFence(ctx)
		})
		b.bus.setAway(true)
		d := b.put(try(1))
		time.Sleep(time.Hour) // longer than any stall
		if b.works.Load() != 0 {
			t.Fatal("started although nobody knows the fence")
		}
		b.bus.setAway(false)
		time.Sleep(time.Minute)
		if b.works.Load() != 1 {
			t.Fatal("not started")
		}
		b.bus.setAway(true)
		close(goOn) // a running attempt goes on with the fence that it knows
		time.Sleep(time.Second)
		b.bus.setAway(false)
		<-d.end
		b.end()
		if got := b.results(); len(got) != 0 {
			t.Errorf("results %+v", got)
		}
	})
}

// B54: no more is fetched than there are free slots.
func TestB54OneMessagePerFreeSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := start(t, 2, func(context.Context, *attempt.Run) error { <-release; return nil })
		var all []*fakeDelivery
		for partition := range 5 {
			b.bus.setFence(id, 1)
			all = append(all, b.put(job.Attempt{Job: numbered(partition), Fence: 1}))
			b.bus.setFence(numbered(partition), 1)
		}
		synctest.Wait()
		if got, waiting := b.works.Load(), len(b.bus.waiting); got != 2 || waiting != 3 {
			t.Errorf("%d at work, %d waiting", got, waiting)
		}
		close(release)
		for _, d := range all {
			<-d.end
			if d.Count() != 1 {
				t.Errorf("delivered %d times", d.Count())
			}
		}
		b.end()
		if b.works.Load() != 5 {
			t.Errorf("%d runs", b.works.Load())
		}
	})
}

func numbered(partition int) job.ID {
	return job.ID("01890a5d-ac96-774b-bcce-b302099a805" + string(rune('0'+partition)))
}

// B55: a message is kept while its work advances, and only then; a copy that comes all the same joins the run.
func TestB55MessageIsKeptWhileWorkAdvances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := start(t, 2, func(ctx context.Context, r *attempt.Run) error {
			for range 60 { // one minute of work
				time.Sleep(time.Second)
				r.Step()
			}
			<-ctx.Done() // hangs
			return ctx.Err()
		})
		d := b.put(try(1))
		time.Sleep(61 * time.Second)
		if _, marks := d.state(); marks < 5 || marks > 7 {
			t.Errorf("%d marks in a minute of work, one each 10 s", marks)
		}
		again := b.put(try(1)) // the server has not heard the marks
		synctest.Wait()
		if b.works.Load() != 1 {
			t.Error("worked on twice at once")
		}
		_, before := again.state()
		<-again.end
		b.end()
		if _, after := again.state(); after > before+1 {
			t.Errorf("%d marks while nothing advanced", after-before)
		}
		got := b.results()
		if len(got) != 1 || got[0].Outcome != job.OutcomeFailed || !strings.Contains(got[0].Fault.Message, "no progress") {
			t.Errorf("results %+v", got)
		}
	})
}

func TestMessageThatComesAgainAfterTheEndIsOnlyAcknowledged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := start(t, 1, func(ctx context.Context, r *attempt.Run) error { r.Settle(ctx, okResult()); return nil })
		<-b.put(try(1)).end
		again := b.put(try(1))
		<-again.end
		b.end()
		b.wantSettled(again, "ack")
		if b.works.Load() != 1 || len(b.results()) != 1 {
			t.Errorf("%d runs, results %+v", b.works.Load(), b.results())
		}
	})
}

func TestOutcomesAreKeptWhileTheBusIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		freed := make(chan struct{})
		var b *bench
		b = start(t, 1, func(ctx context.Context, r *attempt.Run) error {
			b.bus.setAway(true)
			r.Settle(ctx, okResult())
			close(freed)
			return nil
		})
		began := time.Now()
		b.put(try(1))
		<-freed
		if waited := time.Since(began); waited > 10*time.Second {
			t.Errorf("memory was held for %s", waited)
		}
		time.Sleep(time.Hour)
		b.bus.setAway(false)
		time.Sleep(time.Minute)
		again := b.put(try(1)) // nobody could acknowledge it, so it comes again
		<-again.end
		b.end()
		b.wantSettled(again, "ack")
		if b.works.Load() != 1 {
			t.Errorf("%d runs", b.works.Load())
		}
		if got := b.results(); len(got) != 1 || got[0].Outcome != job.OutcomeOK {
			t.Errorf("results %+v", got)
		}
	})
}

func TestStopLetsWorkFinishAndHandBackDoesNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		level service.Level
		want  job.Outcome
	}{
		"drain": {service.Drain, job.OutcomeOK}, "hand back": {service.HandBack, job.OutcomeHandedBack},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := start(t, 1, func(ctx context.Context, r *attempt.Run) error {
					select {
					case <-time.After(time.Minute):
						r.Settle(ctx, okResult())
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				d := b.put(try(1))
				time.Sleep(time.Second)
				began := time.Now()
				b.ctl.Stop(c.level, "SIGTERM")
				synctest.Wait()
				late := b.put(try(2))
				<-d.end
				b.end()
				if how, _ := late.state(); how != "" {
					t.Errorf("new work was taken after the stop: %s", how)
				}
				if got := b.results(); len(got) != 1 || got[0].Outcome != c.want {
					t.Errorf("results %+v", got)
				}
				if c.level == service.HandBack && time.Since(began) > time.Second {
					t.Errorf("handing back took %s", time.Since(began))
				}
			})
		})
	}
}

func TestOrdersOfTheCoordinator(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := start(t, 1, func(ctx context.Context, _ *attempt.Run) error { <-ctx.Done(); return ctx.Err() })
		var other []string
		quiet, err := b.worker.Obey(func(c *wire.Control) { other = append(other, c.Asset) })
		if err != nil {
			t.Fatal(err)
		}
		defer quiet()
		order := func(c wire.Control) {
			c.Node = node
			data, err := wire.Encode(&c)
			if err != nil {
				t.Fatal(err)
			}
			b.bus.orders(bus.Message{Data: data})
		}
		d := b.put(try(1))
		synctest.Wait()
		a := try(1)
		order(wire.Control{Kind: wire.ControlCancel, Attempt: &a})
		<-d.end
		if got := b.results(); len(got) != 0 {
			t.Errorf("a cancelled attempt's results %+v", got)
		}
		order(wire.Control{Kind: wire.ControlDrain, Reason: "repair"})
		if state, reason := b.worker.State(); state != wire.StateDraining || !strings.Contains(reason, "repair") {
			t.Errorf("state %s: %s", state, reason)
		}
		b.bus.setFence(id, 2)
		synctest.Wait()
		next := b.put(try(2))
		synctest.Wait()
		if b.works.Load() != 1 {
			t.Error("work was taken while draining")
		}
		order(wire.Control{Kind: wire.ControlUndrain})
		synctest.Wait()
		if b.works.Load() != 2 {
			t.Error("no work was taken after draining")
		}
		order(wire.Control{Kind: wire.ControlEvict, Asset: "srs:toy"})
		if diff := cmp.Diff([]string{"srs:toy"}, other); diff != "" {
			t.Error(diff)
		}
		a = try(2)
		order(wire.Control{Kind: wire.ControlCancel, Attempt: &a})
		<-next.end
		b.end()
	})
}

func TestPublishWaitsForTheBusAndEndsWithTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		published := make(chan error, 1)
		var b *bench
		b = start(t, 1, func(ctx context.Context, r *attempt.Run) error {
			b.bus.setAway(true)
			err := r.Publish(ctx, bus.Message{Subject: "p", ID: "p"})
			published <- err
			return err
		})
		d := b.put(try(1))
		time.Sleep(time.Hour) // longer than any stall
		a := try(1)
		if !b.worker.Board.Cancel(a, attempt.ErrCancelled) {
			t.Fatal("not at work any more")
		}
		if err := <-published; !errors.Is(err, context.Canceled) {
			t.Errorf("publish: %v", err)
		}
		b.bus.setAway(false)
		<-d.end
		b.end()
	})
}

// What the rack does not let a worker publish is no mistake of the job's, which a kind Invalid would end.
func TestPublishThatIsRefusedIsNotTheJobsFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := make(chan error, 1)
		b := start(t, 1, func(ctx context.Context, r *attempt.Run) error {
			err := r.Publish(ctx, bus.Message{Subject: refusedSubject, ID: "p"})
			refused <- err
			return err
		})
		d := b.put(try(1))
		if err := <-refused; fault.KindOf(err) != fault.Internal {
			t.Errorf("publish: %s, %v", fault.KindOf(err), err)
		}
		<-d.end
		b.end()
	})
}

// With a group, the workers of a node may be different users: each must be able to read, send and remove what the other
// could not send.
func TestKeptResultsAreTheGroups(t *testing.T) {
	t.Parallel()
	for group, want := range map[int][2]fs.FileMode{
		-1:           {fs.ModeDir | 0o700, 0o600},
		os.Getegid(): {fs.ModeDir | fs.ModeSetgid | 0o770, 0o640},
	} {
		b, config, folder := newFakeBus(), attempt.DefaultConfig(), filepath.Join(t.TempDir(), "outbox")
		config.RetryMin, config.RetryMax = time.Millisecond, time.Millisecond
		b.setAway(true)
		ctx, end := context.WithCancel(t.Context())
		o := attempt.NewOutbox(ctx, b, config, folder, group, zerolog.Nop())
		o.Put(bus.Message{Subject: wire.ResultSubject(node), ID: "kept", Data: []byte("{}")}, nil)
		file := filepath.Join(folder, "kept.json")
		for _, err := os.Stat(file); err != nil; _, err = os.Stat(file) {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		for i, path := range []string{folder, file} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != want[i] {
				t.Errorf("group %d: %s has mode %v, want %v", group, filepath.Base(path), info.Mode(), want[i])
			}
		}
		end()
		o.Wait()
	}
}

func TestKeptResultsAreSentByTheNextProcess(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	b, config := newFakeBus(), attempt.DefaultConfig()
	config.RetryMin, config.RetryMax = time.Millisecond, time.Millisecond
	b.setAway(true)
	ctx, end := context.WithCancel(t.Context())
	first := attempt.NewOutbox(ctx, b, config, folder, -1, zerolog.Nop())
	result := *okResult()
	result.Attempt, result.Node, result.Device = try(1), node, "d1"
	data, err := wire.Encode(&result)
	if err != nil {
		t.Fatal(err)
	}
	first.Put(bus.Message{Subject: wire.ResultSubject(node), ID: result.ID(), Data: data}, nil)
	for files := 0; files == 0; {
		entries, err := filepath.Glob(filepath.Join(folder, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		files = len(entries)
		time.Sleep(time.Millisecond)
	}
	end()
	first.Wait()
	for name, text := range map[string]string{
		"foreign.json": "{}", try(2).String() + ".ok.json": `{"subject":"c2.result.n2","id":"x","data":""}`, "other": "x",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.setAway(false)
	second := attempt.NewOutbox(t.Context(), b, config, folder, -1, zerolog.Nop())
	if err := second.Resume(node, attempt.NewBoard(func() {})); err != nil {
		t.Fatal(err)
	}
	second.Wait()
	if got := b.messages(wire.ResultSubject(node)); len(got) != 1 || got[0].ID != result.ID() {
		t.Errorf("sent %+v", got)
	}
	if _, err := os.Stat(filepath.Join(folder, result.ID()+".json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("copy of a sent result: %v", err)
	}
	if left, _ := os.ReadDir(folder); len(left) != 3 {
		t.Errorf("%d files are left, want the three foreign ones", len(left))
	}
}
