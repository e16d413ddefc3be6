package bustest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

func setupTwice(s *suite) {
	t := bus.Topology{
		Streams: []bus.Stream{{
			Name: "Q_" + s.prefix, Subjects: []string{s.prefix + ".q.*"}, Retention: bus.WorkQueue, BytesMax: 1 << 20,
			MessagesMax: 1,
		}},
		Buckets: []bus.Bucket{{Name: "b-" + s.prefix, BytesMax: 1 << 20}},
		Objects: []bus.ObjectBucket{{Name: "o-" + s.prefix, BytesMax: 1 << 20}},
	}
	s.setup(t)
	s.publish(s.message("", "one"))
	_, err := s.bus.Publish(s.ctx, s.message("", "two"))
	s.wantKind(err, fault.Exhausted)
	s.setup(t)
	t.Streams[0].MessagesMax = 2
	s.setup(t)
	s.publish(s.message("", "two"))
	if n := s.messages("Q_" + s.prefix); n != 2 {
		s.Errorf("%d messages after set-up was repeated, want 2", n)
	}
	t.Streams[0].Name = "a b"
	s.wantKind(s.bus.Setup(s.ctx, t), fault.Invalid)
}

func wholeAndOnce(s *suite) {
	q := s.open(s.queue(nil))
	want := bus.Message{
		Subject: s.prefix + ".q.a", ID: "id 1", Data: []byte{0, 1, 255, '\r', '\n'},
		Header: map[string]string{"traceparent": "00-ab-cd-01", "X-Case": "Kept"},
	}
	s.publish(want)
	d := s.fetch(q)
	got := d.Message()
	if diff := cmp.Diff(want, got); diff != "" {
		s.Error(diff)
	}
	if d.Count() != 1 {
		s.Errorf("count %d at first", d.Count())
	}
	state, err := q.State(s.ctx)
	s.must(err)
	if diff := cmp.Diff(bus.QueueState{Held: 1, HeldMax: -1}, state); diff != "" {
		s.Error(diff)
	}
	s.must(d.Ack(s.ctx))
	for i := range 5 {
		s.publish(s.message("", fmt.Sprint(i)))
	}
	for i := range 5 {
		d := s.fetch(q)
		if got := string(d.Message().Data); got != fmt.Sprint(i) {
			s.Errorf("message %s at place %d", got, i)
		}
		s.must(d.Ack(s.ctx))
	}
	// At the end: a fetch that was broken off may be given a message a moment later, which then comes after the next.
	s.fetchNothing(q, 50*time.Millisecond)
	if n := s.messages("Q_" + s.prefix); n != 0 {
		s.Errorf("%d messages left", n)
	}
}

// b52: a message that nobody acknowledges is given out again and again, with its count, until it is terminated; no
// bound of the bus makes it invisible.
func b52(s *suite) {
	c := s.queue(nil)
	c.AckWait = 200 * time.Millisecond
	q := s.open(c)
	s.publish(s.message("x", "poison"))
	const attempts = 4
	for i, last := 1, 0; i <= attempts; i++ {
		d := s.fetch(q)
		// What reaches a process that stood still for longer than it may be held is not given out, but counted.
		if d.Count() <= last {
			s.Fatalf("count %d at delivery %d, after %d", d.Count(), i, last)
		}
		last = d.Count()
		if n := s.messages(c.Stream); n != 1 {
			s.Fatalf("%d messages while it is dead", n)
		}
		if i == attempts {
			s.must(d.Term(s.ctx, "3 attempts\nwere enough"))
		}
	}
	if n := s.messages(c.Stream); n != 0 {
		s.Errorf("%d messages left", n)
	}
	s.fetchNothing(q, 3*c.AckWait)
}

func b53(s *suite) {
	c := s.queue(nil)
	q := s.open(c)
	const big = 20
	for i := range big {
		s.publish(s.message("", fmt.Sprintf("big %d", i)))
	}
	for range big {
		s.must(s.fetch(q).Nak(s.ctx, time.Hour))
	}
	state, err := q.State(s.ctx)
	s.must(err)
	if state.Held != big || state.Waiting != 0 {
		s.Errorf("state %+v, want %d held", state, big)
	}
	s.publish(s.message("", "small"))
	begun := time.Now()
	d := s.fetch(q)
	if got := string(d.Message().Data); got != "small" || time.Since(begun) > patience/2 {
		s.Errorf("%q after %s", got, time.Since(begun))
	}
	s.must(d.Nak(s.ctx, 0))
	again := s.fetch(q)
	if got := string(again.Message().Data); got != "small" || again.Count() != 2 {
		s.Errorf("%q, count %d: put back without delay", got, again.Count())
	}
	s.must(again.Nak(s.ctx, 100*time.Millisecond))
	begun = time.Now()
	if got := string(s.fetch(q).Message().Data); got != "small" || time.Since(begun) < 80*time.Millisecond {
		s.Errorf("%q after %s: put back with a delay", got, time.Since(begun))
	}
}

// b54: ten messages, each worth half an ack wait of work, and two workers: ten runs, five each.
func b54(s *suite) {
	c := s.queue(nil)
	c.AckWait = 400 * time.Millisecond
	var (
		mu    sync.Mutex
		runs  = map[string]int{}
		per   [2]int
		wg    sync.WaitGroup
		total = 10
	)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	queues := [2]bus.Queue{}
	for w := range queues {
		other := s.harness.Open(s, bus.Events{})
		defer other.Close()
		q, err := other.Queue(s.ctx, c)
		s.must(err)
		queues[w] = q
	}
	for i := range total {
		s.publish(s.message("", fmt.Sprint(i)))
	}
	for w, q := range queues {
		wg.Go(func() {
			for {
				d, err := q.Fetch(ctx)
				if err != nil {
					return
				}
				time.Sleep(c.AckWait / 2) // the work
				if err := d.Ack(s.ctx); err != nil {
					s.Error(err)
				}
				mu.Lock()
				runs[string(d.Message().Data)]++
				per[w]++
				done := len(runs) == total
				mu.Unlock()
				if done {
					cancel()
				}
			}
		})
	}
	wg.Wait()
	if len(runs) != total || per[0]+per[1] != total || per[0] < 3 || per[1] < 3 {
		s.Errorf("%d of %d messages; runs by worker %v", len(runs), total, per)
	}
}

func ackWait(s *suite) {
	c := s.queue(nil)
	c.AckWait = 1200 * time.Millisecond // a crowded machine is late by less
	q := s.open(c)
	s.publish(s.message("", "long"))
	d := s.fetch(q)
	ctx, cancel := context.WithTimeout(s.ctx, 2*c.AckWait)
	defer cancel()
	ticker := time.NewTicker(c.AckWait / 12)
	defer ticker.Stop()
	fetched := make(chan error, 1)
	go func() {
		_, err := q.Fetch(ctx)
		fetched <- err
	}()
	for ctx.Err() == nil {
		select {
		case <-ticker.C:
			if err := d.InProgress(s.ctx); err != nil {
				s.Error(err)
			}
		case <-ctx.Done():
		}
	}
	if err := await(s, "end of fetch", fetched); err == nil {
		s.Fatal("a message in progress was given out again")
	}
	begun := time.Now()
	again := s.fetch(q)
	if again.Count() < 2 || time.Since(begun) > c.AckWait+patience/2 {
		s.Errorf("count %d after %s of silence", again.Count(), time.Since(begun))
	}
	// A late acknowledgement counts under the next holder: the fence, not the bus, decides who was right.
	s.must(d.Ack(s.ctx))
	s.must(again.Ack(s.ctx))
	s.fetchNothing(q, c.AckWait+c.AckWait/6)
}

func b57(s *suite) {
	c := s.queue(func(st *bus.Stream) { st.DuplicateWindow = time.Minute })
	q := s.open(c)
	s.publish(s.message("job.0.1", "first"))
	duplicate, err := s.bus.Publish(s.ctx, s.message("job.0.1", "again"))
	if err != nil || !duplicate {
		s.Errorf("duplicate %v, %v", duplicate, err)
	}
	s.must(s.fetch(q).Ack(s.ctx))
	duplicate, err = s.bus.Publish(s.ctx, s.message("job.0.1", "after it was done"))
	if err != nil || !duplicate {
		s.Errorf("after the acknowledgement: duplicate %v, %v", duplicate, err)
	}
	s.fetchNothing(q, 50*time.Millisecond)
	s.publish(s.message("job.0.2", "retry"))
	if got := string(s.fetch(q).Message().Data); got != "retry" {
		s.Errorf("fetched %q", got)
	}
}

// b58: a queue of 4096 bytes and ten publishers at once: what is accepted is stored, nothing older makes room.
func b58(s *suite) {
	c := s.queue(func(st *bus.Stream) { st.BytesMax = 4096 })
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		accepted []string
	)
	for i := range 10 {
		wg.Go(func() {
			name := fmt.Sprintf("%02d", i)
			_, err := s.bus.Publish(s.ctx, s.message(name, name+strings.Repeat("x", 800)))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				accepted = append(accepted, name)
			} else {
				s.wantKind(err, fault.Exhausted)
			}
		})
	}
	wg.Wait()
	if len(accepted) == 0 || len(accepted) >= 6 {
		s.Fatalf("%d of 10 messages of 800 bytes accepted by 4096 bytes", len(accepted))
	}
	if n := s.messages(c.Stream); n != uint64(len(accepted)) {
		s.Errorf("%d accepted, %d stored", len(accepted), n)
	}
	q := s.open(c)
	for range accepted {
		d := s.fetch(q)
		if name := string(d.Message().Data[:2]); !contains(accepted, name) {
			s.Errorf("message %s was refused and is stored", name)
		}
		s.must(d.Ack(s.ctx))
	}
	s.fetchNothing(q, 50*time.Millisecond)
	s.publish(s.message("room", strings.Repeat("x", 800)))
	if got := s.fetch(q).Message(); got.ID != "room" {
		s.Errorf("fetched %s after there was room", got.ID)
	}
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

func tooLarge(s *suite) {
	s.queue(func(st *bus.Stream) { st.MessageBytesMax = 1024 })
	_, err := s.bus.Publish(s.ctx, s.message("1", strings.Repeat("x", 2000)))
	s.wantKind(err, fault.Invalid)
	_, err = s.bus.Publish(s.ctx, s.message("2", strings.Repeat("x", 2<<20)))
	s.wantKind(err, fault.Invalid)
	s.publish(s.message("3", "small"))
}

func b64(s *suite) {
	m := bus.Message{Subject: s.prefix + ".nowhere", ID: "1"}
	begun := time.Now()
	_, err := s.bus.Publish(s.ctx, m)
	s.wantKind(err, fault.Transient)
	if err == nil || !strings.Contains(err.Error(), "not set up") || fault.ReportOf("", err).Hint == "" {
		s.Errorf("the error does not say what is missing: %v", err)
	}
	if time.Since(begun) > patience/2 {
		s.Errorf("told after %s", time.Since(begun))
	}
	_, err = s.bus.Queue(s.ctx, bus.Consumer{Stream: "Q_" + s.prefix + "_none", Name: "w", Subject: "x"})
	s.wantKind(err, fault.Transient)
	_, err = s.bus.KV(s.ctx, "none-"+s.prefix)
	s.wantKind(err, fault.NotFound)
	_, err = s.bus.Objects(s.ctx, "none-"+s.prefix)
	s.wantKind(err, fault.NotFound)
	_, err = s.bus.Log(s.ctx, "none-"+s.prefix)
	s.wantKind(err, fault.NotFound)
}

// b65: 50 messages while workers come, take one message and leave, by acknowledging or by dying.
func b65(s *suite) {
	c := s.queue(nil)
	c.AckWait = 200 * time.Millisecond
	done := map[string]bool{}
	go func() {
		for i := range 50 {
			if _, err := s.bus.Publish(s.ctx, s.message(fmt.Sprintf("%d", i), fmt.Sprintf("%d", i))); err != nil {
				s.Error(err)
			}
		}
	}()
	for round := 0; len(done) < 50 && round < 200; round++ {
		b := s.harness.Open(s, bus.Events{})
		q, err := b.Queue(s.ctx, c)
		s.must(err)
		for range 3 {
			d := s.fetch(q)
			if round%4 == 3 {
				break // dies with a message in its hands
			}
			s.must(d.Ack(s.ctx))
			done[string(d.Message().Data)] = true
			if len(done) == 50 {
				break
			}
		}
		b.Close()
	}
	if len(done) != 50 {
		s.Errorf("%d of 50 messages", len(done))
	}
	if n := s.messages(c.Stream); n != 0 {
		s.Errorf("%d messages left", n)
	}
}

func fetchEnds(s *suite) {
	c := s.queue(nil)
	q := s.open(c)
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := q.Fetch(ctx)
		ended <- err
	}()
	cancel()
	if err := await(s, "end of fetch", ended); !errors.Is(err, context.Canceled) {
		s.Error(err)
	}
	s.publish(s.message("", "for who waits"))
	if d := s.fetch(q); string(d.Message().Data) != "for who waits" {
		s.Errorf("fetched %q", d.Message().Data)
	}
	other := c
	other.Name = "w2"
	_, err := s.bus.Queue(s.ctx, other)
	s.wantKind(err, fault.Invalid) // it would share messages with the first
	other.Subject = s.prefix + ".q.b"
	s.open(other)
}

// existing: whoever may make no consumer says so at once, then uses what somebody else made, with that one's settings.
func existing(s *suite) {
	c := s.queue(nil)
	c.AckWait = 200 * time.Millisecond
	mine := c
	mine.Existing, mine.AckWait = true, time.Hour
	begun := time.Now()
	_, err := s.bus.Queue(s.ctx, mine)
	s.wantKind(err, fault.NotFound)
	if err == nil || !strings.Contains(err.Error(), "not made yet") || fault.ReportOf("", err).Hint == "" ||
		time.Since(begun) > patience/2 {
		s.Errorf("after %s: %v", time.Since(begun), err)
	}
	s.open(c)
	q := s.open(mine)
	s.publish(s.message("", "work"))
	if d := s.fetch(q); d.Count() != 1 {
		s.Errorf("count %d", d.Count())
	}
	if d := s.fetch(q); d.Count() != 2 { // after the maker's ack wait, not ours
		s.Errorf("count %d", d.Count())
	} else {
		s.must(d.Ack(s.ctx))
	}
	other := mine
	other.Subject = s.prefix + ".q.b"
	_, err = s.bus.Queue(s.ctx, other)
	s.wantKind(err, fault.Conflict)
}

func readLog(s *suite) {
	name := "L_" + s.prefix
	s.setup(bus.Topology{Streams: []bus.Stream{{
		Name: name, Subjects: []string{s.prefix + ".e.>"}, Retention: bus.Limits, BytesMax: 1 << 20,
	}}})
	for i := range 4 {
		what := []string{"x", "y"}[i%2]
		s.publish(bus.Message{
			Subject: s.prefix + ".e." + what, Data: []byte(fmt.Sprint(i)), Header: map[string]string{"K": "v"},
		})
	}
	l, err := s.bus.Log(s.ctx, name)
	s.must(err)
	var got []string
	for from := uint64(1); ; {
		m, err := l.Next(s.ctx, s.prefix+".e.y", from)
		if fault.KindOf(err) == fault.NotFound {
			break
		}
		s.must(err)
		if m.At.IsZero() || time.Since(m.At) > time.Minute || m.Header["K"] != "v" {
			s.Errorf("stored at %s, header %v", m.At, m.Header)
		}
		got = append(got, fmt.Sprintf("%d:%s:%s", m.Sequence, strings.TrimPrefix(m.Subject, s.prefix), m.Data))
		from = m.Sequence + 1
	}
	if diff := cmp.Diff([]string{"2:.e.y:1", "4:.e.y:3"}, got); diff != "" {
		s.Error(diff)
	}
	s.must(l.Delete(s.ctx, 2))
	s.wantKind(l.Delete(s.ctx, 2), fault.NotFound)
	m, err := l.Next(s.ctx, s.prefix+".e.>", 2)
	if err != nil || m.Sequence != 3 {
		s.Errorf("after the deletion: %d, %v", m.Sequence, err)
	}
	state, err := l.State(s.ctx)
	if err != nil || state.Messages != 3 || state.First != 1 || state.Last != 4 || state.Bytes == 0 {
		s.Errorf("state %+v, %v", state, err)
	}
}

func dropOldest(s *suite) {
	name := "L_" + s.prefix
	s.setup(bus.Topology{Streams: []bus.Stream{{
		Name: name, Subjects: []string{s.prefix + ".e"}, Retention: bus.Limits, MessagesMax: 2, DropOldest: true,
	}}})
	for i := range 3 {
		s.publish(bus.Message{Subject: s.prefix + ".e", Data: []byte(fmt.Sprint(i))})
	}
	l, err := s.bus.Log(s.ctx, name)
	s.must(err)
	m, err := l.Next(s.ctx, ">", 1)
	if err != nil || string(m.Data) != "1" {
		s.Errorf("oldest is %q, %v", m.Data, err)
	}
}
