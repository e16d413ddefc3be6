package client_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

const id = job.ID("01890a5d-ac96-774b-bcce-b302099a8057")

// rack answers as a coordinator would, with one job.
type rack struct {
	t   *testing.T
	bus bus.Bus

	mu      sync.Mutex
	submits []wire.Submit
	inputs  [][]byte
	refuse  *fault.Report
	record  job.Record
}

func newRack(t *testing.T) (*rack, *client.Client) {
	t.Helper()
	r, c := newRackOn(t, membus.New(membus.Config{}))
	r.setUp()
	return r, c
}

// newRackOn is a rack that is not set up yet.
func newRackOn(t *testing.T, server *membus.Server) (*rack, *client.Client) {
	t.Helper()
	r := &rack{t: t, bus: server.Connect(bus.Events{})}
	t.Cleanup(r.bus.Close)
	r.record = job.Record{ID: id, Tenant: "t1", State: job.Active, Partitions: []job.Partition{{Stage: job.Waiting}}}
	mine := server.Connect(bus.Events{})
	t.Cleanup(mine.Close)
	return r, client.New(mine, "t1")
}

// setUp makes the buckets.
func (r *rack) setUp() {
	err := r.bus.Setup(context.Background(), bus.Topology{Objects: []bus.ObjectBucket{
		{Name: wire.ObjectsIn("t1"), BytesMax: 1 << 30}, {Name: wire.ObjectsProofs("t1"), BytesMax: 1 << 20},
	}})
	if err != nil {
		r.t.Error(err)
	}
}

// serve begins to answer.
func (r *rack) serve() {
	r.t.Helper()
	stop, err := r.bus.Serve(bus.Service{Name: "c2", Version: "0.1.0", Endpoints: []bus.Endpoint{
		{Name: "submit", Subject: wire.ClientSubject(wire.VerbSubmit, "t1"), Handle: r.submit},
		{Name: "status", Subject: wire.ClientSubject(wire.VerbStatus, "t1"), Handle: r.status},
	}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(stop)
}

func answer(body wire.Body) (bus.Message, error) {
	data, err := wire.Encode(body)
	return bus.Message{Data: data}, err
}

func (r *rack) submit(ctx context.Context, m bus.Message) (bus.Message, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var s wire.Submit
	if err := wire.Decode(m.Data, &s); err != nil {
		return bus.Message{}, err
	}
	input := s.Inline
	if s.Object != nil {
		objects, err := r.bus.Objects(ctx, wire.ObjectsIn("t1"))
		if err != nil {
			return bus.Message{}, err
		}
		reader, _, err := objects.Get(ctx, s.Object.Name, wire.ReferenceBytesMax)
		if err != nil {
			return bus.Message{}, err
		}
		defer reader.Close()
		if input, err = io.ReadAll(reader); err != nil {
			return bus.Message{}, err
		}
	}
	r.submits, r.inputs = append(r.submits, s), append(r.inputs, input)
	return answer(&wire.SubmitReply{Reply: wire.Reply{Fault: r.refuse}, Job: id, State: job.Active})
}

func (r *rack) status(context.Context, bus.Message) (bus.Message, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return answer(&wire.StatusReply{Record: &r.record})
}

func TestB63SmallInputsGoInlineLargeOnesByReference(t *testing.T) {
	t.Parallel()
	r, c := newRack(t)
	r.serve()
	for _, size := range []int{1, wire.InlineBytesMax, wire.InlineBytesMax + 1, 3 << 20} {
		input := bytes.Repeat([]byte{7}, size)
		if _, err := c.Submit(t.Context(), client.Request{Miner: "1000", Input: bytes.NewReader(input)}); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		last := r.submits[len(r.submits)-1]
		if byReference := last.Object != nil; byReference != (size > wire.InlineBytesMax) {
			t.Errorf("%d bytes go by reference: %v", size, byReference)
		}
		if !bytes.Equal(r.inputs[len(r.inputs)-1], input) || last.Key == "" {
			t.Errorf("%d bytes did not arrive, or without a key", size)
		}
	}
	objects, err := r.bus.Objects(t.Context(), wire.ObjectsIn("t1"))
	if err != nil {
		t.Fatal(err)
	}
	if left, err := objects.List(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("uploads left behind: %v, %v", left, err)
	}
}

func TestRefusalIsTheCoordinatorsOwn(t *testing.T) {
	t.Parallel()
	r, c := newRack(t)
	r.refuse = &fault.Report{Kind: fault.Conflict, Message: "key stands for another job", Hint: "use another key"}
	r.serve()
	_, err := c.Submit(t.Context(), client.Request{Miner: "1000", Input: bytes.NewReader([]byte("x"))})
	if fault.KindOf(err) != fault.Conflict || err.Error() != r.refuse.Message {
		t.Errorf("%v", err)
	}
	if _, err := c.Submit(t.Context(), client.Request{Miner: "1000", Input: bytes.NewReader(nil)}); fault.KindOf(
		err,
	) != fault.Invalid {
		t.Errorf("an empty input: %v", err)
	}
}

func TestRequestsWaitForARackThatStarts(t *testing.T) {
	t.Parallel()
	r, c := newRack(t)
	done := make(chan error, 1)
	go func() {
		_, err := c.Submit(
			context.Background(),
			client.Request{Key: "k", Miner: "1000", Input: bytes.NewReader([]byte("x"))},
		)
		done <- err
	}()
	time.Sleep(50 * time.Millisecond) // a request without anybody to answer it
	r.serve()
	if err := <-done; err != nil {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	nobody := client.New(r.bus, "t2")
	if _, err := nobody.Status(ctx, id); fault.KindOf(err) != fault.Transient {
		t.Errorf("nobody answers: %v", err)
	}
}

// A coordinator is killed with requests in its hands: they are made again, each time with more patience.
func TestRequestsThatWereLostAreMadeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, c := newRack(t)
		killed := make(chan struct{})
		var asked []time.Duration
		begun := time.Now()
		stop, err := r.bus.Serve(bus.Service{Name: "c2", Version: "0.1.0", Endpoints: []bus.Endpoint{{
			Name: "status", Subject: wire.ClientSubject(wire.VerbStatus, "t1"),
			Handle: func(ctx context.Context, m bus.Message) (bus.Message, error) {
				r.mu.Lock()
				asked = append(asked, time.Since(begun).Truncate(time.Second))
				count := len(asked)
				r.mu.Unlock()
				if count < 3 {
					<-killed
					return bus.Message{}, errors.New("nobody hears it")
				}
				return r.status(ctx, m)
			},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Status(t.Context(), id)
		if err != nil || s.Record.ID != id {
			t.Errorf("%+v, %v", s, err)
		}
		if want := []time.Duration{0, 5 * time.Second, 16 * time.Second}; !slices.Equal(asked, want) {
			t.Errorf("asked after %v, not %v", asked, want)
		}
		close(killed)
		stop()
	})
}

func TestB49WaitEndsWithTheJobOrWithItsContext(t *testing.T) {
	t.Parallel()
	r, c := newRack(t)
	r.serve()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if record, err := c.Wait(ctx, id, nil); err == nil || record == nil || record.State != job.Active {
		t.Errorf("a job that stands still: %v, %v", record, err)
	}
	proof := bytes.Repeat([]byte{3}, wire.ProofBytes)
	sum := sha256.Sum256(proof)
	objects, err := r.bus.Objects(t.Context(), wire.ObjectsProofs("t1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := objects.Put(t.Context(), "p", bytes.NewReader(proof), nil); err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{}, 10)
	ended := make(chan *job.Record, 1)
	go func() {
		record, _ := c.Wait(context.Background(), id, func(*wire.StatusReply) { seen <- struct{}{} })
		ended <- record
	}()
	<-seen
	r.mu.Lock()
	r.record.State, r.record.Result = job.Done, &job.Object{Name: "p", SHA256: hex.EncodeToString(sum[:])}
	r.mu.Unlock()
	event := bus.Message{Subject: wire.EventSubject("t1", id, wire.EventDone)}
	if err := r.bus.Send(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	record := <-ended
	got, err := c.Result(t.Context(), record)
	if err != nil || !bytes.Equal(got, proof) {
		t.Errorf("%v", err)
	}
	record.Result.SHA256 = hex.EncodeToString(make([]byte, 32))
	if _, err := c.Result(t.Context(), record); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("another proof under the name: %v", err)
	}
	failed := &job.Record{ID: id, State: job.Failed, Fault: &fault.Report{Kind: fault.Invalid, Message: "bad"}}
	if _, err := c.Result(t.Context(), failed); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a failed job's proof: %v", err)
	}
}
