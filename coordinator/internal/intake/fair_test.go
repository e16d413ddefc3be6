package intake_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/proofrack/proofrack/coordinator/internal/intake"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// slowSource is an input that stops half-way until it is told to go on.
type slowSource struct {
	first, rest io.Reader
	ctx         context.Context //nolint:containedctx // ends the wait of a test that failed
	reached     chan struct{}
	goOn        chan struct{}
	told        bool
}

func newSlowSource(t *testing.T, data []byte) *slowSource {
	half := len(data) / 2
	return &slowSource{
		first: bytes.NewReader(data[:half]), rest: bytes.NewReader(data[half:]), ctx: t.Context(),
		reached: make(chan struct{}), goOn: make(chan struct{}),
	}
}

func (s *slowSource) Read(p []byte) (int, error) {
	if n, err := s.first.Read(p); n > 0 || err == nil {
		return n, err
	}
	if !s.told {
		s.told = true
		close(s.reached)
	}
	select {
	case <-s.goOn:
		return s.rest.Read(p)
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

func (s *slowSource) Close() error { return nil }

func byObject(r *wire.Submit) {
	r.Inline, r.Object = nil, &job.Object{Name: "c1", Bytes: int64(len(interactive())), SHA256: digestOf(interactive())}
}

// One slow sender in each turn would stop everybody's submits: a request computes or waits for its source, not both.
func TestASlowSourceHoldsUpNobody(t *testing.T) {
	t.Parallel()
	in, s := newIntake(t, func(c *intake.Config) { c.ChecksMax = 1 })
	slow := newSlowSource(t, interactive())
	s.slow = map[string]*slowSource{"t1/c1": slow}
	answer := make(chan *wire.SubmitReply, 1)
	go func() { answer <- in.Submit(t.Context(), "t1", request(byObject)) }()
	<-slow.reached
	for _, tenant := range []job.Tenant{"t2", "t1"} { // the slow one's own tenant, too
		if reply := in.Submit(t.Context(), tenant, request(nil)); reply.Fault != nil {
			t.Fatalf("submit of %s beside a slow source: %v", tenant, reply.Fault)
		}
	}
	close(slow.goOn)
	if reply := <-answer; reply.Fault != nil {
		t.Errorf("the slow one: %v", reply.Fault)
	}
}

// Requests that are not answered take what answers requests, so each tenant may have its burst of them.
func TestRequestsInHandAreBoundedPerTenant(t *testing.T) {
	t.Parallel()
	in, s := newIntake(t, func(c *intake.Config) { c.SubmitBurst, c.SubmitsPerMinute = 2, 0 })
	slow := [...]*slowSource{newSlowSource(t, interactive()), newSlowSource(t, interactive())}
	s.slow = map[string]*slowSource{"t1/c1": slow[0], "t1/c2": slow[1]}
	answers := make(chan *wire.SubmitReply, len(slow))
	for i, name := range []string{"c1", "c2"} {
		go func() {
			answers <- in.Submit(t.Context(), "t1", request(func(r *wire.Submit) { byObject(r); r.Object.Name = name }))
		}()
		<-slow[i].reached
	}
	reply := in.Submit(t.Context(), "t1", request(nil))
	if fault.KindOf(reply.Err()) != fault.Exhausted {
		t.Errorf("a third request while two are not answered: %+v", reply)
	}
	if reply := in.Submit(t.Context(), "t2", request(nil)); reply.Fault != nil {
		t.Errorf("another tenant: %v", reply.Fault)
	}
	for _, one := range slow {
		close(one.goOn)
		if reply := <-answers; reply.Fault != nil {
			t.Error(reply.Fault)
		}
	}
	if reply := in.Submit(t.Context(), "t1", request(nil)); reply.Fault != nil {
		t.Errorf("after they were answered: %v", reply.Fault)
	}
}
