package bustest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

func plain(s *suite) {
	got := make(chan string, 16)
	stop, err := s.bus.Subscribe(s.prefix+".n.*.beat", func(m bus.Message) {
		got <- m.Subject + "=" + string(m.Data) + m.Header["K"]
	})
	s.must(err)
	sender := s.harness.Open(s, bus.Events{})
	defer sender.Close()
	send := func(subject, data string) {
		s.must(sender.Send(s.ctx, bus.Message{
			Subject: s.prefix + subject, Data: []byte(data), Header: map[string]string{"K": "!"},
		}))
	}
	send(".n.a.report", "no")
	send(".n.a.beat", "1")
	send(".n.b.beat", "2")
	for _, want := range []string{".n.a.beat=1!", ".n.b.beat=2!"} {
		if g := await(s, "message", got); g != s.prefix+want {
			s.Errorf("got %s, want %s", g, want)
		}
	}
	stop()
	stop()
	send(".n.a.beat", "3")
	select {
	case g := <-got:
		s.Errorf("%s after stop", g)
	case <-time.After(50 * time.Millisecond):
	}
	s.wantKind(sender.Send(s.ctx, bus.Message{Subject: s.prefix + ".x", ID: "1"}), fault.Invalid)

	// What is stored is told to who listens, too.
	s.queue(nil)
	stop, err = s.bus.Subscribe(s.prefix+".q.>", func(m bus.Message) { got <- string(m.Data) })
	s.must(err)
	defer stop()
	s.publish(s.message("", "stored"))
	if g := await(s, "stored message", got); g != "stored" {
		s.Errorf("got %s", g)
	}
}

// b68: a handler that stands still loses what is over the bound, is told how much, and slows nobody.
func b68(s *suite) {
	var told atomic.Uint64
	slow := s.harness.Open(s, bus.Events{Dropped: func(_ string, n uint64) { told.Add(n) }})
	defer slow.Close()
	entered, release := make(chan struct{}), make(chan struct{})
	var seen atomic.Uint64
	last := make(chan struct{})
	_, err := slow.Subscribe(s.prefix+".e", func(m bus.Message) {
		if seen.Add(1) == 1 {
			close(entered)
			<-release
		}
		if string(m.Data) == "last" {
			close(last)
		}
	})
	s.must(err)
	fast := make(chan struct{})
	var quick atomic.Int64
	total := 2*s.harness.PendingMax + 10
	stop, err := s.bus.Subscribe(s.prefix+".e", func(bus.Message) {
		if quick.Add(1) == int64(total) {
			close(fast)
		}
	})
	s.must(err)
	defer stop()
	begun := time.Now()
	for i := range total {
		s.must(s.bus.Send(s.ctx, bus.Message{Subject: s.prefix + ".e"}))
		if i == 0 {
			await(s, "first message", entered)
		}
		if i%32 == 0 { // the fast one must not be overrun by this loop
			for quick.Load() < int64(i-s.harness.PendingMax/2) {
				time.Sleep(time.Millisecond)
			}
		}
	}
	await(s, "all messages to the fast one", fast)
	if took := time.Since(begun); took > patience {
		s.Errorf("sending took %s", took)
	}
	close(release)
	for seen.Load() < uint64(s.harness.PendingMax) {
		time.Sleep(time.Millisecond)
	}
	s.must(s.bus.Send(s.ctx, bus.Message{Subject: s.prefix + ".e", Data: []byte("last")}))
	await(s, "message after the gap", last)
	dropped := slow.Dropped()
	if dropped == 0 || seen.Load()+dropped != uint64(total)+1 {
		s.Errorf("%d seen and %d dropped of %d", seen.Load(), dropped, total+1)
	}
	if told.Load() != dropped {
		s.Errorf("told of %d drops, counted %d", told.Load(), dropped)
	}
	if n := s.bus.Dropped(); n != 0 {
		s.Errorf("%d dropped at the fast one", n)
	}
}

func echo(_ context.Context, m bus.Message) (bus.Message, error) {
	return bus.Message{
		Data: append([]byte(m.Subject+m.Header["H"]), m.Data...), Header: map[string]string{"A": "2"},
	}, nil
}

func requests(s *suite) {
	server := s.harness.Open(s, bus.Events{})
	defer server.Close()
	ask := bus.Message{Subject: s.prefix + ".submit.main", Data: []byte("hello"), Header: map[string]string{"H": "1"}}
	_, err := s.bus.Request(s.ctx, ask)
	s.wantKind(err, fault.Transient)
	stop, err := server.Serve(bus.Service{Name: "s-" + s.prefix, Version: "0.1.0", Endpoints: []bus.Endpoint{
		{Name: "submit", Subject: s.prefix + ".submit.*", Handle: echo},
		{Name: "fail", Subject: s.prefix + ".fail", Handle: func(context.Context, bus.Message) (bus.Message, error) {
			return bus.Message{}, fault.WithHint(fault.New(fault.Conflict, "no: line\nbreak"), "do this")
		}},
		{Name: "empty", Subject: s.prefix + ".empty", Handle: func(context.Context, bus.Message) (bus.Message, error) {
			return bus.Message{}, nil
		}},
	}})
	s.must(err)
	answer, err := s.bus.Request(s.ctx, ask)
	s.must(err)
	if got := string(answer.Data) + answer.Header["A"]; got != s.prefix+".submit.main1hello2" {
		s.Errorf("answer %q", got)
	}
	_, err = s.bus.Request(s.ctx, bus.Message{Subject: s.prefix + ".fail"})
	want := fault.Report{Kind: fault.Conflict, Message: "no: line\nbreak", Hint: "do this"}
	var report *fault.Report
	if !errors.As(err, &report) || cmp.Diff(want, *report) != "" {
		s.Errorf("error %#v", err)
	}
	if answer, err = s.bus.Request(s.ctx, bus.Message{Subject: s.prefix + ".empty"}); err != nil || len(answer.Data) != 0 {
		s.Errorf("empty answer %q, %v", answer.Data, err)
	}
	stop()
	_, err = s.bus.Request(s.ctx, ask)
	s.wantKind(err, fault.Transient)
}

func everywhere(s *suite) {
	var one, all atomic.Int64
	const instances = 3
	heard := make(chan struct{}, 100)
	for range instances {
		server := s.harness.Open(s, bus.Events{})
		defer server.Close()
		count := func(n *atomic.Int64) func(context.Context, bus.Message) (bus.Message, error) {
			return func(context.Context, bus.Message) (bus.Message, error) {
				n.Add(1)
				heard <- struct{}{}
				return bus.Message{}, nil
			}
		}
		_, err := server.Serve(bus.Service{Name: "s-" + s.prefix, Version: "0.1.0", Endpoints: []bus.Endpoint{
			{Name: "one", Subject: s.prefix + ".one", Handle: count(&one)},
			{Name: "all", Subject: s.prefix + ".all", Everywhere: true, Handle: count(&all)},
		}})
		s.must(err)
	}
	for range 10 {
		_, err := s.bus.Request(s.ctx, bus.Message{Subject: s.prefix + ".one"})
		s.must(err)
		await(s, "request", heard)
	}
	_, err := s.bus.Request(s.ctx, bus.Message{Subject: s.prefix + ".all"})
	s.must(err)
	for range instances {
		await(s, "request everywhere", heard)
	}
	if one.Load() != 10 || all.Load() != instances {
		s.Errorf("%d of 10 shared, %d of %d everywhere", one.Load(), all.Load(), instances)
	}
}

func concurrent(s *suite) {
	server := s.harness.Open(s, bus.Events{})
	defer server.Close()
	var running, most atomic.Int64
	release := make(chan struct{})
	slow := func(ctx context.Context, _ bus.Message) (bus.Message, error) {
		n := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return bus.Message{}, nil
	}
	stop, err := server.Serve(bus.Service{
		Name: "s-" + s.prefix, Version: "0.1.0", ConcurrentMax: 2,
		Endpoints: []bus.Endpoint{
			{Name: "slow", Subject: s.prefix + ".slow", Handle: slow},
			{
				Name: "quick", Subject: s.prefix + ".quick",
				Handle: func(context.Context, bus.Message) (bus.Message, error) { return bus.Message{}, nil },
			},
		},
	})
	s.must(err)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if _, err := s.bus.Request(s.ctx, bus.Message{Subject: s.prefix + ".slow"}); err != nil {
				s.Error(err)
			}
		})
	}
	for most.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(30 * time.Millisecond) // time for a third one, if there were no bound
	quickCtx, cancel := context.WithTimeout(s.ctx, 2*time.Second)
	if _, err := s.bus.Request(quickCtx, bus.Message{Subject: s.prefix + ".quick"}); err != nil {
		s.Errorf("slow requests hold up those to another endpoint: %v", err)
	}
	cancel()
	close(release)
	wg.Wait()
	if most.Load() != 2 {
		s.Errorf("%d requests at once, want 2", most.Load())
	}
	stop()
	if n := running.Load(); n != 0 {
		s.Errorf("%d handlers run after stop", n)
	}
}

func badNames(s *suite) {
	for name, call := range map[string]func() error{
		"subject": func() error { _, err := s.bus.Publish(s.ctx, bus.Message{Subject: "a..b"}); return err },
		"pattern": func() error { return s.bus.Send(s.ctx, bus.Message{Subject: "a.*"}) },
		"listen":  func() error { _, err := s.bus.Subscribe("a..b", func(bus.Message) {}); return err },
		"header": func() error {
			return s.bus.Send(s.ctx, bus.Message{Subject: "a", Header: map[string]string{"K": "v\r\nNats-Msg-Id: 1"}})
		},
		"reserved": func() error {
			_, err := s.bus.Publish(s.ctx, bus.Message{Subject: "a", Header: map[string]string{"nats-rollup": "all"}})
			return err
		},
		"id":      func() error { _, err := s.bus.Publish(s.ctx, bus.Message{Subject: "a", ID: "x\ny"}); return err },
		"bucket":  func() error { _, err := s.bus.KV(s.ctx, "../x"); return err },
		"objects": func() error { _, err := s.bus.Objects(s.ctx, "a.b"); return err },
		"log":     func() error { _, err := s.bus.Log(s.ctx, "a.>"); return err },
		"queue":   func() error { _, err := s.bus.Queue(s.ctx, bus.Consumer{Stream: "a b", Name: "x"}); return err },
		"service": func() error { _, err := s.bus.Serve(bus.Service{Name: "a b", Version: "1.0.0"}); return err },
		"ask":     func() error { _, err := s.bus.Request(s.ctx, bus.Message{Subject: ""}); return err },
	} {
		if err := call(); fault.KindOf(err) != fault.Invalid {
			s.Errorf("%s: %v", name, err)
		}
	}
}

func closing(s *suite) {
	c := s.queue(nil)
	b := s.harness.Open(s, bus.Events{})
	q, err := b.Queue(s.ctx, c)
	s.must(err)
	ended := make(chan error, 1)
	go func() {
		_, err := q.Fetch(s.ctx)
		ended <- err
	}()
	calls := make(chan string, 8)
	_, err = b.Subscribe(s.prefix+".e", func(bus.Message) { calls <- "event" })
	s.must(err)
	_, err = b.Serve(bus.Service{Name: "s-" + s.prefix, Version: "0.1.0", Endpoints: []bus.Endpoint{{
		Name: "e", Subject: s.prefix + ".ask",
		Handle: func(context.Context, bus.Message) (bus.Message, error) { return bus.Message{}, nil },
	}}})
	s.must(err)
	b.Close()
	s.wantKind(await(s, "end of fetch", ended), fault.Cancelled)
	if b.Connected() {
		s.Error("connected after close")
	}
	_, err = b.Publish(s.ctx, s.message("", "x"))
	s.wantKind(err, fault.Cancelled)
	s.must(s.bus.Send(s.ctx, bus.Message{Subject: s.prefix + ".e"}))
	_, err = s.bus.Request(s.ctx, bus.Message{Subject: s.prefix + ".ask"})
	s.wantKind(err, fault.Transient)
	select {
	case what := <-calls:
		s.Errorf("%s after close", what)
	default:
	}
	// What others wait for goes on.
	other := s.open(c)
	s.publish(s.message("", "x"))
	s.must(s.fetch(other).Ack(s.ctx))
}
