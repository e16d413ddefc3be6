package gateway

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/service"
)

// answer is what came of a call that a test makes beside others.
type answer[T any] struct {
	value T
	err   error
}

func beside[T any](call func() (T, error)) <-chan answer[T] {
	out := make(chan answer[T], 1)
	go func() {
		value, err := call()
		out <- answer[T]{value, err}
	}()
	return out
}

func (g *running) prove(ctx context.Context, r *cuzkv1.SubmitProofRequest) <-chan answer[*cuzkv1.ProveResponse] {
	return beside(func() (*cuzkv1.ProveResponse, error) {
		return g.client.Prove(ctx, &cuzkv1.ProveRequest{Submit: r})
	})
}

func TestProveGivesTheProofAndTimes(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	proved := g.prove(g.ctx(), request(t, "porep-1000-4243", "2KiB-v1_1"))
	id := g.rack.accepted(1)
	g.rack.end(id, job.Done, nil)
	a := <-proved
	check(t, a.err)
	want := &cuzkv1.AwaitProofResponse{
		JobId: string(id), Status: cuzkv1.AwaitProofResponse_COMPLETED, Proof: proofOf(id, 1),
		QueueWaitMs: 1000, SynthesisMs: 1500, GpuComputeMs: 250, TotalMs: 5000,
	}
	if !proto.Equal(a.value.Result, want) {
		t.Errorf("got %v, want %v", a.value.Result, want)
	}
}

// Whatever the order of fields, the same input is the same job; a resend after its end gets the result.
func TestResendGetsTheRunningJobAndItsResult(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	first, err := g.client.SubmitProof(g.ctx(), request(t, "porep-1000-4243", "2KiB-v1_1"))
	check(t, err)
	again := request(t, "porep-1000-4243", "2KiB-v1_1")
	again.VanillaProof = append([]byte(`{"extra": 1, `), again.VanillaProof[1:]...)
	second, err := g.client.SubmitProof(g.ctx(), again)
	check(t, err)
	if first.JobId != second.JobId || first.QueuePosition != 1 {
		t.Errorf("%v and %v", first, second)
	}
	g.rack.end(job.ID(first.JobId), job.Done, nil)
	out, err := g.client.Prove(g.ctx(), &cuzkv1.ProveRequest{Submit: again})
	check(t, err)
	if out.Result.JobId != first.JobId || len(out.Result.Proof) != 192 {
		t.Errorf("%v", out)
	}
}

func TestAnotherInputUnderTheSameNameIsAnotherJob(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	first, err := g.client.SubmitProof(g.ctx(), request(t, "porep-1000-4243", "2KiB-v1_1"))
	check(t, err)
	second, err := g.client.SubmitProof(g.ctx(), request(t, "porep-1000-4243", "2KiB-v1"))
	check(t, err)
	third, err := g.client.SubmitProof(g.ctx(), request(t, "ps-porep-1000-4243-9", "2KiB-v1"))
	check(t, err)
	if first.JobId == second.JobId || second.JobId == third.JobId || first.JobId == third.JobId {
		t.Errorf("%v, %v, %v", first, second, third)
	}
	g.rack.end(job.ID(second.JobId), job.Done, nil)
	out, err := g.client.AwaitProof(g.ctx(), &cuzkv1.AwaitProofRequest{JobId: second.JobId})
	check(t, err)
	if !bytes.Equal(out.Proof, proofOf(job.ID(second.JobId), 1)) {
		t.Error("not the proof of this job")
	}
}

func TestFailedJobDoesNotAnswerTheNextTry(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	for try := 1; try <= 2; try++ {
		proved := g.prove(g.ctx(), request(t, "porep-1000-4243", "2KiB-v1_1"))
		id := g.rack.accepted(try)
		g.rack.end(id, job.Failed, &fault.Report{Kind: fault.Device, Message: "the device is gone"})
		a := <-proved
		check(t, a.err)
		if r := a.value.Result; r.Status != cuzkv1.AwaitProofResponse_FAILED || r.ErrorMessage != "the device is gone" ||
			r.JobId != string(id) ||
			len(r.Proof) > 0 {
			t.Errorf("try %d: %v", try, r)
		}
	}
	proved := g.prove(g.ctx(), request(t, "porep-1000-4243", "2KiB-v1_1"))
	g.rack.end(g.rack.accepted(3), job.Done, nil)
	if a := <-proved; a.err != nil || a.value.Result.Status != cuzkv1.AwaitProofResponse_COMPLETED {
		t.Errorf("%v", a)
	}
}

func TestTimeoutOfAwaitLeavesTheJobAlone(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	s, err := g.client.SubmitProof(g.ctx(), request(t, "a", "2KiB-v1_1"))
	check(t, err)
	out, err := g.client.AwaitProof(g.ctx(), &cuzkv1.AwaitProofRequest{JobId: s.JobId, TimeoutMs: 30})
	check(t, err)
	if out.Status != cuzkv1.AwaitProofResponse_TIMEOUT || out.JobId != s.JobId {
		t.Errorf("%v", out)
	}
	// The longest time that can be written is no time in the past.
	waits := beside(func() (*cuzkv1.AwaitProofResponse, error) {
		return g.client.AwaitProof(g.ctx(), &cuzkv1.AwaitProofRequest{JobId: s.JobId, TimeoutMs: 1<<64 - 1})
	})
	g.rack.end(job.ID(s.JobId), job.Done, nil)
	if a := <-waits; a.err != nil || a.value.Status != cuzkv1.AwaitProofResponse_COMPLETED {
		t.Errorf("%v", a)
	}
}

func TestCancelTellsWhetherItWasAtWork(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	for _, atWork := range []bool{false, true} {
		s, err := g.client.SubmitProof(g.ctx(), request(t, "a", "2KiB-v1_1"))
		check(t, err)
		if atWork {
			g.rack.begin(job.ID(s.JobId))
		}
		out, err := g.client.CancelProof(g.ctx(), &cuzkv1.CancelProofRequest{JobId: s.JobId})
		check(t, err)
		again, err := g.client.CancelProof(g.ctx(), &cuzkv1.CancelProofRequest{JobId: s.JobId})
		check(t, err)
		if out.WasRunning != atWork || again.WasRunning {
			t.Errorf("was running: %v, then %v; want %v, then false", out.WasRunning, again.WasRunning, atWork)
		}
		ended, err := g.client.AwaitProof(g.ctx(), &cuzkv1.AwaitProofRequest{JobId: s.JobId})
		check(t, err)
		if ended.Status != cuzkv1.AwaitProofResponse_CANCELLED || ended.ErrorMessage == "" {
			t.Errorf("%v", ended)
		}
	}
}

func TestUnknownJobsAreNotFound(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	for _, id := range []string{"", "x", "01890a5d-ac96-774b-bcce-b302099a8057", upstreamPrefix + "7", "a\x00b"} {
		_, err := g.client.AwaitProof(g.ctx(), &cuzkv1.AwaitProofRequest{JobId: id})
		_, cancelErr := g.client.CancelProof(g.ctx(), &cuzkv1.CancelProofRequest{JobId: id})
		if status.Code(err) != codes.NotFound || status.Code(cancelErr) != codes.NotFound {
			t.Errorf("%q: %v, %v", id, err, cancelErr)
		}
	}
}

func TestBadRequestsAreRefusedWithTheField(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	for name, c := range map[string]struct {
		change func(*cuzkv1.SubmitProofRequest)
		want   string
	}{
		"no kind":         {func(r *cuzkv1.SubmitProofRequest) { r.ProofKind = 0 }, "proof_kind"},
		"no input":        {func(r *cuzkv1.SubmitProofRequest) { r.VanillaProof = nil }, "vanilla_proof"},
		"cut off":         {func(r *cuzkv1.SubmitProofRequest) { r.VanillaProof = r.VanillaProof[:5000] }, "vanilla_proof"},
		"another miner":   {func(r *cuzkv1.SubmitProofRequest) { r.MinerId++ }, "vanilla_proof"},
		"another sector":  {func(r *cuzkv1.SubmitProofRequest) { r.SectorNumber++ }, "4244"},
		"sector size":     {func(r *cuzkv1.SubmitProofRequest) { r.SectorSize = 32 << 30 }, "sector_size"},
		"number of proof": {func(r *cuzkv1.SubmitProofRequest) { r.RegisteredProof = 8 }, "StackedDrg32GiBV1_1"},
		"no such proof":   {func(r *cuzkv1.SubmitProofRequest) { r.RegisteredProof = 1 << 63 }, "registered_proof"},
		"long name":       {func(r *cuzkv1.SubmitProofRequest) { r.RequestId = strings.Repeat("x", 5000) }, "request_id"},
		"parts": {func(r *cuzkv1.SubmitProofRequest) {
			r.VanillaProof, r.VanillaProofs = nil, [][]byte{{1}}
		}, "vanilla_proofs"},
	} {
		r := request(t, "a", "2KiB-v1_1")
		c.change(r)
		_, err := g.client.SubmitProof(g.ctx(), r)
		_, proveErr := g.client.Prove(g.ctx(), &cuzkv1.ProveRequest{Submit: r})
		for _, err := range []error{err, proveErr} {
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := g.client.Prove(g.ctx(), &cuzkv1.ProveRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("nothing to prove: %v", err)
	}
	g.rack.mu.Lock()
	defer g.rack.mu.Unlock()
	if g.rack.submits != 0 {
		t.Errorf("%d bad requests reached the rack", g.rack.submits)
	}
}

// Fields that clients may leave out: proto3 cannot tell 0 from nothing.
func TestWhatIsNotSaidIsTakenFromTheInput(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	r := request(t, "a", "2KiB-v1_1")
	r.SectorSize, r.RegisteredProof, r.SectorNumber, r.Priority = 0, 0, 0, 0
	first, err := g.client.SubmitProof(g.ctx(), r)
	check(t, err)
	plain := request(t, "a", "2KiB-v1_1")
	plain.VanillaProof = sample(t, "2KiB-v1_1") // without the envelope: the same input
	second, err := g.client.SubmitProof(g.ctx(), plain)
	check(t, err)
	if first.JobId != second.JobId {
		t.Error("the envelope makes another job")
	}
}

// A client that gives up ends nothing: its resend gets the job, and one that never hears of it leaves it running.
func TestWorkGoesOnWhenTheClientGivesUp(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	hold := make(chan struct{})
	g.rack.refuse = func(int) error { <-hold; return nil }
	ctx, cancel := context.WithCancel(g.ctx())
	proved := g.prove(ctx, request(t, "a", "2KiB-v1_1"))
	g.rack.until(func() bool { return g.rack.submits == 1 })
	cancel()
	if a := <-proved; status.Code(a.err) != codes.Canceled {
		t.Errorf("%v", a)
	}
	again := g.prove(g.ctx(), request(t, "a", "2KiB-v1_1"))
	close(hold)
	id := g.rack.accepted(1)
	g.rack.end(id, job.Done, nil)
	if a := <-again; a.err != nil || a.value.Result.JobId != string(id) {
		t.Errorf("%v", a)
	}
	g.rack.mu.Lock()
	defer g.rack.mu.Unlock()
	if len(g.rack.order) != 1 {
		t.Errorf("%d jobs", len(g.rack.order))
	}
}

// What the rack cannot take is held and tried again, not refused.
func TestAFullRackIsWaitedFor(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	g.rack.refuse = func(n int) error {
		switch n {
		case 1:
			return fault.New(fault.Exhausted, "too many jobs")
		case 2:
			return fault.New(fault.Transient, "intake is paused")
		}
		return nil
	}
	_, err := g.client.SubmitProof(g.ctx(), request(t, "a", "2KiB-v1_1"))
	check(t, err)
	if g.rack.submits != 3 || strings.Count(g.log.String(), "it is held") != 1 {
		t.Errorf("%d submits; log %s", g.rack.submits, g.log)
	}
}

func TestHoldingHasAnEnd(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *Config) { c.Gateway.HoldMax = 50 * time.Millisecond })
	g.rack.refuse = func(int) error { return fault.New(fault.Exhausted, "too many jobs") }
	_, err := g.client.SubmitProof(g.ctx(), request(t, "a", "2KiB-v1_1"))
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "held for") {
		t.Errorf("%v", err)
	}
}

func TestRefusalOfTheRackIsNotHeld(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	g.rack.refuse = func(int) error { return fault.New(fault.Invalid, "sector_number: no") }
	_, err := g.client.SubmitProof(g.ctx(), request(t, "a", "2KiB-v1_1"))
	if status.Code(err) != codes.InvalidArgument || g.rack.submits != 1 {
		t.Errorf("%v after %d submits", err, g.rack.submits)
	}
}

// The gateway serves before there is a rack, and while it is away: calls wait.
func TestCallsWaitForARackThatIsAway(t *testing.T) {
	t.Parallel()
	r := newFakeRack(t)
	r.server.Cut()
	g := startAt(t, r, nil)
	proved := g.prove(g.ctx(), request(t, "a", "2KiB-v1_1"))
	if _, err := g.client.GetMetrics(g.ctx(), &cuzkv1.GetMetricsRequest{}); err != nil {
		t.Error(err)
	}
	r.server.Heal()
	id := r.accepted(1)
	r.server.Cut()
	r.server.Heal()
	r.end(id, job.Done, nil)
	if a := <-proved; a.err != nil || a.value.Result.Status != cuzkv1.AwaitProofResponse_COMPLETED {
		t.Errorf("%v", a)
	}
}

// A stopping gateway answers calls that wait, so that clients ask the next one, and a new gateway knows the job.
func TestAnotherGatewayGoesOn(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	proved := g.prove(g.ctx(), request(t, "a", "2KiB-v1_1"))
	id := g.rack.accepted(1)
	g.stop(service.HandBack)
	if a := <-proved; status.Code(a.err) != codes.Unavailable ||
		!strings.Contains(a.err.Error(), "send the request again") {
		t.Errorf("%v", a)
	}
	next := startAt(t, g.rack, nil)
	waits := beside(func() (*cuzkv1.AwaitProofResponse, error) {
		return next.client.AwaitProof(next.ctx(), &cuzkv1.AwaitProofRequest{JobId: string(id)})
	})
	g.rack.end(id, job.Done, nil)
	if a := <-waits; a.err != nil || a.value.Status != cuzkv1.AwaitProofResponse_COMPLETED {
		t.Errorf("%v", a)
	}
}

func TestPrioritiesAreOrdered(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	last := -101
	for _, p := range []cuzkv1.Priority{
		cuzkv1.Priority_LOW, cuzkv1.Priority_NORMAL, cuzkv1.Priority_HIGH, cuzkv1.Priority_CRITICAL,
	} {
		r := request(t, p.String(), "2KiB-v1_1")
		r.Priority = p
		s, err := g.client.SubmitProof(g.ctx(), r)
		check(t, err)
		if got := g.rack.jobs[job.ID(s.JobId)].Priority; got <= last {
			t.Errorf("%s is %d, the one below it %d", p, got, last)
		} else {
			last = got
		}
	}
	if priorityOf(cuzkv1.Priority_PRIORITY_UNSPECIFIED) != priorityOf(cuzkv1.Priority_NORMAL) {
		t.Error("nothing said is not normal")
	}
}
