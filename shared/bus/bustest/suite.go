package bustest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

// Harness opens connections to one server.
type Harness struct {
	// Open makes another connection; the suite closes it.
	Open func(t testing.TB, events bus.Events) bus.Bus
	// PendingMax is how many plain messages the connections let wait for one handler.
	PendingMax int
}

// patience bounds every wait for something that must come.
const patience = time.Minute

// suite is one test's view.
type suite struct {
	*testing.T
	harness Harness
	prefix  string
	bus     bus.Bus
	ctx     context.Context
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	var number atomic.Int64
	for _, c := range []struct {
		name string
		test func(*suite)
	}{
		{"SetupCanBeRepeatedAndChanged", setupTwice},
		{"MessagesArriveWholeAndOnce", wholeAndOnce},
		{"B52DeadMessagesStayVisibleUntilTerminated", b52},
		{"B53MessagesPutBackHoldNobodyUp", b53},
		{"B54IdleWorkersGetTheWork", b54},
		{"SilenceBringsMessagesBackAndProgressKeepsThem", ackWait},
		{"B57DuplicatesAreToldAndNewIDsRun", b57},
		{"B58AcceptedIsStored", b58},
		{"MessagesOverTheLimitAreInvalid", tooLarge},
		{"B64NoStreamIsNotSetUp", b64},
		{"B65ConsumersComeAndGoWithoutLoss", b65},
		{"FetchEnds", fetchEnds},
		{"ExistingQueuesAreMadeByOthers", existing},
		{"LogsAreReadByPlace", readLog},
		{"LogsDropTheOldestIfTold", dropOldest},
		{"PlainMessages", plain},
		{"B68SlowHandlersLoseAndCount", b68},
		{"Requests", requests},
		{"RequestsAreSharedOrSentEverywhere", everywhere},
		{"ServicesBoundWhatRuns", concurrent},
		{"KeysAreComparedAndSwapped", keys},
		{"KeysOneWriterWins", race},
		{"WatchesTellPresentThenChanges", watches},
		{"Objects", objects},
		{"B67BrokenUploadsLeaveNothing", b67},
		{"BadNamesAreInvalid", badNames},
		{"CloseEndsEverything", closing},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			defer cancel()
			b := h.Open(t, bus.Events{})
			defer b.Close()
			c.test(&suite{t, h, fmt.Sprintf("t%d", number.Add(1)), b, ctx})
		})
	}
}

// queue sets up one work queue and gives its consumer.
func (s *suite) queue(change func(*bus.Stream)) bus.Consumer {
	s.Helper()
	stream := bus.Stream{
		Name: "Q_" + s.prefix, Subjects: []string{s.prefix + ".q.*"}, Retention: bus.WorkQueue, BytesMax: 1 << 20,
	}
	if change != nil {
		change(&stream)
	}
	s.setup(bus.Topology{Streams: []bus.Stream{stream}})
	return bus.Consumer{Stream: stream.Name, Name: "w", Subject: s.prefix + ".q.a", AckWait: 10 * time.Second}
}

func (s *suite) setup(t bus.Topology) {
	s.Helper()
	if err := s.bus.Setup(s.ctx, t); err != nil {
		s.Fatal(err)
	}
}

func (s *suite) open(c bus.Consumer) bus.Queue {
	s.Helper()
	q, err := s.bus.Queue(s.ctx, c)
	if err != nil {
		s.Fatal(err)
	}
	return q
}

func (s *suite) message(id, data string) bus.Message {
	return bus.Message{Subject: s.prefix + ".q.a", ID: id, Data: []byte(data)}
}

func (s *suite) publish(m bus.Message) {
	s.Helper()
	if duplicate, err := s.bus.Publish(s.ctx, m); err != nil || duplicate {
		s.Fatalf("publish %s: duplicate %v, %v", m.ID, duplicate, err)
	}
}

func (s *suite) fetch(q bus.Queue) bus.Delivery {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	d, err := q.Fetch(ctx)
	if err != nil {
		s.Fatal(err)
	}
	return d
}

func (s *suite) fetchNothing(q bus.Queue, wait time.Duration) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, wait)
	defer cancel()
	if d, err := q.Fetch(ctx); err == nil {
		s.Fatalf("fetched %q", d.Message().Data)
	} else if ctx.Err() == nil {
		s.Fatal(err)
	}
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) wantKind(err error, want fault.Kind) {
	s.Helper()
	if got := fault.KindOf(err); got != want {
		s.Errorf("fault %q, want %q: %v", got, want, err)
	}
}

// messages is how many a stream holds.
func (s *suite) messages(stream string) uint64 {
	s.Helper()
	l, err := s.bus.Log(s.ctx, stream)
	s.must(err)
	state, err := l.State(s.ctx)
	s.must(err)
	return state.Messages
}

// await gives what a channel brings, or ends the test.
func await[T any](s *suite, what string, c <-chan T) T {
	s.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		s.Fatalf("%s did not come", what)
	}
	panic("not reached")
}
