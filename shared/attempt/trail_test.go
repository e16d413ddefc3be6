package attempt_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/telemetry/otlptest"
)

// tracedTask is a task within a trace.
type tracedTask struct{ benchTask }

const traced = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func (t *tracedTask) TraceParent() string { return traced }

// Work that comes again, since its worker died, is a new span that is linked to the first; the stages of both are below
// the attempt, and the message as a whole tells the outcome.
func TestWorkThatComesAgainIsLinkedToTheFirst(t *testing.T) {
	t.Parallel()
	r := otlptest.Start(t)
	config := telemetry.DefaultTraceConfig()
	config.Endpoint = r.URL
	tracer, err := telemetry.OpenTracer(t.Context(), config, telemetry.Program{Name: "worker"}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	for before, outcome := range []error{nil, fault.New(fault.Device, "broken")} {
		b := &bench{t: t, bus: newFakeBus(), ctl: service.NewControl(), done: make(chan error, 1)}
		b.bus.setFence(id, 1)
		b.work = func(_ context.Context, r *attempt.Run) error {
			r.Trace().Enter("stage")
			return outcome
		}
		settings, log := attempt.DefaultConfig(), zerolog.Nop()
		b.worker = &attempt.Worker{
			Config: settings, Bus: b.bus,
			Fences: attempt.NewFences(fakeKV{bus: b.bus}, func() bool { return true }, time.Second),
			Board:  attempt.NewBoard(func() {}), Gate: attempt.NewGate(func() {}), Notes: attempt.NewGate(func() {}),
			Outbox: attempt.NewOutbox(t.Context(), b.bus, settings, "", -1, log), Node: node, Build: "test", Log: log,
			Tracer: tracer,
		}
		decode := func([]byte) (attempt.Task, error) {
			return &tracedTask{benchTask{bench: b, attempt: try(1), node: node}}, nil
		}
		go func() {
			b.done <- b.worker.Serve(t.Context(), b.ctl, attempt.Source{Slots: 1, Decode: decode})
		}()
		d := b.bus.putAgain([]byte("x"), before)
		<-d.end
		b.end()
	}
	tracer.Close()
	spans := r.Spans()
	first := telemetry.TraceContext{TraceID: [16]byte{1}, SpanID: telemetry.WorkSpan(try(1), job.Reserved)}
	firstID := first.String()[36:52]
	var got []string
	var work []otlptest.Span
	for _, s := range spans {
		if s.Parent != traced[36:52] || s.Facts[telemetry.KeyJobID] != string(id) {
			t.Errorf("%s is below %s, of job %s", s.Name, s.Parent, s.Facts[telemetry.KeyJobID])
		}
		if s.Name == telemetry.SpanWork {
			work = append(work, s)
		}
		got = append(got, s.Name+" "+s.Facts[telemetry.KeyOutcome]+" "+s.Status)
	}
	slices.Sort(got)
	want := []string{
		"process c2.synth.{node} failed broken", "process c2.synth.{node} ok ", "stage  ", "stage  broken",
		"wait for synthesis  ", "wait for synthesis  ", "work started  ", "work started  ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(work) != 2 || work[0].ID != firstID || len(work[0].Links) != 0 || work[1].ID == firstID ||
		!slices.Equal(work[1].Links, []string{firstID}) {
		t.Errorf("the first is %s: %+v", firstID, work)
	}
}

// Without a trace, or a collector, the same code makes nothing.
func TestWorkOutsideOfATraceIsNotTraced(t *testing.T) {
	t.Parallel()
	ran := make(chan *telemetry.Path, 1)
	b := start(t, 1, func(_ context.Context, r *attempt.Run) error {
		ran <- r.Trace()
		return errors.New("done")
	})
	d := b.put(try(1))
	<-d.end
	b.end()
	if path := <-ran; path != nil {
		t.Error("a path")
	}
}
