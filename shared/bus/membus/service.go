package membus

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

// endpoint is one instance's endpoint of a service.
type endpoint struct {
	bus.Endpoint
	service string
	run     func(m bus.Message, answer func(bus.Message, error))
}

// Serve answers requests. With a clock handlers run one at a time, when the clock says so.
func (b *Bus) Serve(s bus.Service) (stop func(), err error) {
	if err := bus.CheckName("service", s.Name); err != nil {
		return nil, err
	}
	for _, e := range s.Endpoints {
		if err := bus.CheckSubject(e.Subject, true); err != nil {
			return nil, fmt.Errorf("serve %s: %w", s.Name, err)
		}
		if err := bus.CheckName("endpoint", e.Name); err != nil {
			return nil, fmt.Errorf("serve %s: %w", s.Name, err)
		}
	}
	most := s.ConcurrentMax
	if most < 1 {
		most = bus.ConcurrentMaxDefault
	}
	ctx, cancel := context.WithCancel(b.ctx)
	var running sync.WaitGroup
	var mine []*endpoint
	for _, e := range s.Endpoints {
		slots := make(chan struct{}, most)
		call := func(m bus.Message, answer func(bus.Message, error)) {
			out, err := e.Handle(ctx, m)
			if err != nil {
				answer(bus.Message{}, fault.ReportOf("", err))
				return
			}
			answer(out, nil)
		}
		run := func(m bus.Message, answer func(bus.Message, error)) {
			b.s.cfg.Clock.AfterFunc(0, func() { call(m, answer) })
		}
		if b.s.cfg.Clock == nil {
			run = func(m bus.Message, answer func(bus.Message, error)) {
				running.Go(func() {
					select {
					case slots <- struct{}{}:
						defer func() { <-slots }()
						call(m, answer)
					case <-ctx.Done():
					}
				})
			}
		}
		mine = append(mine, &endpoint{Endpoint: e, service: s.Name, run: run})
	}
	b.s.mu.Lock()
	b.s.services = append(b.s.services, mine...)
	b.s.mu.Unlock()
	return b.onClose(func() {
		b.s.mu.Lock() // run is called under it, so nothing is added to running from here on
		b.s.services = slices.DeleteFunc(b.s.services, func(e *endpoint) bool { return slices.Contains(mine, e) })
		b.s.mu.Unlock()
		cancel()
		running.Wait()
	}), nil
}

// Request asks and waits. With a clock it must not be called: use Ask.
func (b *Bus) Request(ctx context.Context, m bus.Message) (bus.Message, error) {
	wait, cancel := ctx, context.CancelFunc(func() {})
	if _, ok := ctx.Deadline(); !ok {
		wait, cancel = context.WithTimeout(ctx, callTimeout)
	}
	defer cancel()
	type result struct {
		m   bus.Message
		err error
	}
	got := make(chan result, 1)
	if err := b.Ask(wait, m, func(m bus.Message, err error) {
		select {
		case got <- result{m, err}:
		default: // the first answer counts
		}
	}); err != nil {
		return bus.Message{}, err
	}
	select {
	case r := <-got:
		return r.m, r.err
	case <-b.ctx.Done():
		return bus.Message{}, fmt.Errorf("ask %s: %w", m.Subject, errClosed)
	case <-wait.Done():
		return bus.Message{}, fmt.Errorf("ask %s: %w", m.Subject, wait.Err())
	}
}

// Ask sends a request and calls back with each answer; a lost one is never answered.
func (b *Bus) Ask(ctx context.Context, m bus.Message, answer func(bus.Message, error)) error {
	if err := checkPlain(m); err != nil {
		return err
	}
	if err := b.enter(ctx); err != nil {
		return fmt.Errorf("ask %s: %w", m.Subject, err)
	}
	defer b.s.mu.Unlock()
	verdict := b.s.judge(Request, m.Subject)
	switch {
	case verdict.Err != nil:
		return fmt.Errorf("ask %s: %w", m.Subject, verdict.Err)
	case verdict.Lose:
		return nil
	case verdict.LoseAnswer:
		answer = func(bus.Message, error) {}
	}
	to := b.s.answering(m.Subject)
	if len(to) == 0 {
		return fault.WithHint(fault.New(fault.Transient, "ask %s: nobody answers there", m.Subject),
			"is a coordinator running?")
	}
	for _, e := range to {
		e.run(clone(m), answer)
		if verdict.Twice {
			e.run(clone(m), func(bus.Message, error) {})
		}
	}
	return nil
}

// answering gives who gets a request: all instances of endpoints that are everywhere, one of each other's.
func (s *Server) answering(subject string) []*endpoint {
	var out []*endpoint
	groups := map[string][]*endpoint{}
	var order []string
	for _, e := range s.services {
		if !bus.Match(e.Subject, subject) {
			continue
		}
		if e.Everywhere {
			out = append(out, e)
			continue
		}
		if groups[e.Subject] == nil {
			order = append(order, e.Subject)
		}
		groups[e.Subject] = append(groups[e.Subject], e)
	}
	s.turns++
	for _, name := range order {
		out = append(out, groups[name][s.turns%len(groups[name])])
	}
	return out
}
