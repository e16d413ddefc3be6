package natsbus

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/internal/mailbox"
	"github.com/proofrack/proofrack/shared/fault"
)

// Subscribe calls a handler with plain messages.
func (b *Bus) Subscribe(subject string, handle func(bus.Message)) (stop func(), err error) {
	if err := bus.CheckSubject(subject, true); err != nil {
		return nil, err
	}
	box := mailbox.New(mailbox.Limits{Messages: b.cfg.PendingMax, Bytes: int(b.cfg.PendingBytesMax)}, handle,
		func(count uint64) {
			b.dropped.Add(count)
			if b.events.Dropped != nil {
				b.events.Dropped(subject, count)
			}
		})
	sub, err := b.conn.Subscribe(subject, func(m *nats.Msg) {
		if b.take(m) {
			box.Put(received(m.Subject, m.Header, m.Data))
		}
	})
	if err != nil {
		box.Stop()
		return nil, b.wrap(err, "subscribe to %s", subject)
	}
	// Messages sent after this returns are to arrive. While the server is away the library subscribes when it is back.
	if b.Connected() {
		_ = b.conn.FlushTimeout(b.cfg.CallTimeout)
	}
	end := sync.OnceFunc(func() {
		_ = sub.Unsubscribe() // fails only when the connection is closed, which ends it too
		box.Stop()
	})
	off := b.onClose(end)
	return func() { off(); end() }, nil
}

// Serve answers requests as a NATS micro service.
func (b *Bus) Serve(s bus.Service) (stop func(), err error) {
	if err := bus.CheckName("service", s.Name); err != nil {
		return nil, err
	}
	service, err := micro.AddService(b.conn, micro.Config{
		Name: s.Name, Version: s.Version, Description: s.Description,
		ErrorHandler: func(_ micro.Service, err *micro.NATSError) {
			b.trouble(fault.New(fault.Transient, "service %s on %s: %s", s.Name, err.Subject, err.Description))
		},
	})
	if err != nil {
		return nil, fault.As(fault.Invalid, fmt.Errorf("serve %s: %w", s.Name, err))
	}
	most := s.ConcurrentMax
	if most < 1 {
		most = bus.ConcurrentMaxDefault
	}
	ctx, cancel := context.WithCancel(b.ctx)
	running := &servant{b: b, ctx: ctx}
	for _, e := range s.Endpoints {
		opts := []micro.EndpointOpt{
			micro.WithEndpointSubject(e.Subject), micro.WithEndpointPendingLimits(b.cfg.PendingMax, int(b.cfg.PendingBytesMax)),
		}
		if e.Everywhere {
			opts = append(opts, micro.WithEndpointQueueGroupDisabled())
		}
		err := bus.CheckSubject(e.Subject, true)
		if err == nil {
			err = service.AddEndpoint(e.Name, micro.HandlerFunc(running.handler(most, e.Handle)), opts...)
		}
		if err != nil {
			_ = service.Stop()
			cancel()
			return nil, fault.As(fault.Invalid, fmt.Errorf("serve %s: endpoint %s: %w", s.Name, e.Name, err))
		}
	}
	if b.Connected() {
		_ = b.conn.FlushTimeout(b.cfg.CallTimeout)
	}
	end := sync.OnceFunc(func() {
		_ = service.Stop() // fails only when the connection is away; nothing arrives then either
		if b.conn.IsConnected() {
			_ = b.conn.FlushTimeout(time.Second) // askers are told at once that nobody is here
		}
		cancel()
		running.wait()
	})
	off := b.onClose(end)
	return func() { off(); end() }, nil
}

// servant runs the handlers of one service.
type servant struct {
	b   *Bus
	ctx context.Context

	mu      sync.Mutex
	stopped bool
	running sync.WaitGroup
}

// handler is one endpoint's: it runs at most so many calls at once. Waiting for a turn holds up this endpoint alone.
func (s *servant) handler(
	most int, handle func(context.Context, bus.Message) (bus.Message, error),
) func(micro.Request) {
	slots := make(chan struct{}, most)
	return func(r micro.Request) {
		if !s.takes(r) {
			return
		}
		select {
		case slots <- struct{}{}:
		case <-s.ctx.Done():
			refuse(r)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stopped {
			refuse(r)
			return
		}
		s.running.Go(func() {
			defer func() { <-slots }()
			answer(s.ctx, r, handle)
		})
	}
}

// takes refuses requests that are none, and those whose answer would go where messages mean something.
func (s *servant) takes(r micro.Request) bool {
	why := relayed(r.Reply(), r.Headers())
	if why == "" && r.Reply() != "" && !inbox(r.Reply()) {
		why = "its answer is wanted on " + headerText(r.Reply()) + ", which is no inbox"
	}
	if why != "" {
		s.b.refused(r.Subject(), why)
	}
	return why == ""
}

// refuse tells an asker that came while the service stops.
func refuse(r micro.Request) {
	body, err := json.Marshal(fault.Report{Kind: fault.Transient, Message: "the service stops"})
	if err != nil {
		body = nil
	}
	_ = r.Error(code(fault.Transient), "the service stops", body)
}

func (s *servant) wait() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.running.Wait()
}

// answer calls a handler and sends what it gives. A lost answer is the asker's to notice.
func answer(ctx context.Context, r micro.Request, handle func(context.Context, bus.Message) (bus.Message, error)) {
	m, err := handle(ctx, received(r.Subject(), nats.Header(r.Headers()), r.Data()))
	if err != nil {
		report := fault.ReportOf("", err)
		body, encodeErr := json.Marshal(report)
		if encodeErr != nil {
			body = nil
		}
		_ = r.Error(code(report.Kind), headerText(report.Message), body)
		return
	}
	var opts []micro.RespondOpt
	if len(m.Header) > 0 {
		headers := micro.Headers{}
		for key, value := range m.Header {
			headers[key] = []string{value}
		}
		opts = append(opts, micro.WithHeaders(headers))
	}
	if err := r.Respond(m.Data, opts...); err != nil {
		_ = r.Error("500", "the answer could not be sent: "+headerText(err.Error()), nil)
	}
}

// headerText makes a text fit for a header.
func headerText(s string) string {
	const most = 200
	out := make([]rune, 0, most)
	for _, r := range s {
		if len(out) == most {
			break
		}
		if r < ' ' {
			r = ' '
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return "error"
	}
	return string(out)
}

// code is a fault's kind in the numbers that operators know from HTTP.
func code(k fault.Kind) string {
	switch k {
	case fault.Invalid:
		return "400"
	case fault.NotFound:
		return "404"
	case fault.Conflict, fault.Lost:
		return "409"
	case fault.Exhausted:
		return "429"
	case fault.Transient, fault.Cancelled:
		return "503"
	}
	return "500"
}
