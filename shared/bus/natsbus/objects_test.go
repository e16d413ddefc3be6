package natsbus_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// stuck gives some bytes, then says so and waits.
type stuck struct {
	left    int
	reached chan struct{}
	ctx     context.Context
}

func (s *stuck) Read(p []byte) (int, error) {
	if s.left == 0 {
		if s.reached != nil {
			close(s.reached)
			s.reached = nil
		}
		<-s.ctx.Done()
		return 0, s.ctx.Err()
	}
	n := min(len(p), s.left)
	s.left -= n
	return n, nil
}

// TestB67KilledUploadsAreSwept kills the connection in the middle of uploads; nothing is visible, the pieces are
// counted as partial, stay while they are young, and are gone after a sweep. The live object is not touched.
func TestB67KilledUploadsAreSwept(t *testing.T) {
	t.Parallel()
	server := embedded(t, nil)
	b := dial(t, server, quick(), bus.Events{})
	ctx := t.Context()
	noError(t, b.Setup(ctx, topology))
	o := must[bus.Objects](t)(b.Objects(ctx, "o"))
	must[bus.ObjectInfo](t)(o.Put(ctx, "live", bytes.NewReader(make([]byte, 3<<20)), nil))
	const uploads, sent = 3, 4 << 20
	for range uploads {
		victim := dial(t, server, quick(), bus.Events{})
		store := must[bus.Objects](t)(victim.Objects(ctx, "o"))
		readCtx, cancel := context.WithCancel(ctx)
		source := &stuck{left: sent, reached: make(chan struct{}), ctx: readCtx}
		reached, ended := source.reached, make(chan error, 1)
		go func() {
			_, err := store.Put(ctx, "input", source, nil)
			ended <- err
		}()
		await(t, "half of the upload", reached)
		victim.Close()
		cancel()
		if err := await(t, "end of the upload", ended); err == nil {
			t.Fatal("half an upload succeeded")
		}
	}
	if _, _, err := o.Get(ctx, "input", 1<<30); fault.KindOf(err) != fault.NotFound {
		t.Errorf("half an upload can be read: %v", err)
	}
	usage := must[bus.ObjectUsage](t)(o.Usage(ctx))
	if usage.Live != 3<<20 || usage.Partial < uploads*(sent-1<<20) || usage.Stored < usage.Live+usage.Partial {
		t.Errorf("before the sweep: %+v", usage)
	}
	if freed, err := o.Sweep(ctx, time.Now().Add(-time.Hour)); err != nil || freed != 0 {
		t.Errorf("swept %s of young pieces, %v", freed, err)
	}
	if freed, err := o.Sweep(ctx, time.Now().Add(time.Minute)); err != nil || freed != usage.Partial {
		t.Errorf("swept %s of %s, %v", freed, usage.Partial, err)
	}
	after := must[bus.ObjectUsage](t)(o.Usage(ctx))
	if after.Partial != 0 || after.Live != usage.Live || after.Stored > after.Live+64<<10 {
		t.Errorf("after the sweep: %+v", after)
	}
	must[bus.ObjectInfo](t)(o.Info(ctx, "live"))

	// Marks of deleted objects go, too: nothing at all is left.
	noError(t, o.Delete(ctx, "live"))
	must[bytesize.Bytes](t)(o.Sweep(ctx, time.Now().Add(time.Minute)))
	if rest := must[bus.ObjectUsage](t)(o.Usage(ctx)); rest.Stored != 0 {
		t.Errorf("after everything was deleted: %+v", rest)
	}
}

// TestUploadSweptUnderWayFails: an upload that stood still for so long that its pieces were swept must not succeed.
func TestUploadSweptUnderWayFails(t *testing.T) {
	t.Parallel()
	server := embedded(t, nil)
	b := dial(t, server, quick(), bus.Events{})
	ctx := t.Context()
	noError(t, b.Setup(ctx, topology))
	o := must[bus.Objects](t)(b.Objects(ctx, "o"))
	slow, feed := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := o.Put(ctx, "slow", slow, nil)
		ended <- err
	}()
	must[int](t)(feed.Write(make([]byte, 2<<20)))
	for must[bus.ObjectUsage](t)(o.Usage(ctx)).Partial == 0 {
		time.Sleep(time.Millisecond)
	}
	must[bytesize.Bytes](t)(o.Sweep(ctx, time.Now().Add(time.Minute)))
	must[int](t)(feed.Write(make([]byte, 1<<20)))
	noError(t, feed.Close())
	if err := await(t, "end of the upload", ended); fault.KindOf(err) != fault.Transient {
		t.Errorf("an upload without its first pieces: %v", err)
	}
	if _, err := o.Info(ctx, "slow"); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
}

// An upload begins to a bucket that was opened: when nobody answers for its stream, it elects a leader or is made
// again, and that takes longer than a queue is waited for that may never have been made.
func TestUploadWaitsForTheBucketsStream(t *testing.T) {
	t.Parallel()
	server := embedded(t, nil)
	js := raw(t, server)
	cfg := quick()
	cfg.SetupWait = 0
	b := dial(t, server, cfg, bus.Events{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	noError(t, b.Setup(ctx, topology))
	o := must[bus.Objects](t)(b.Objects(ctx, "o"))
	noError(t, js.DeleteStream(ctx, "OBJ_o"))
	must[bus.ObjectInfo](t)(o.Put(ctx, "x", strings.NewReader("content"), nil))
	must[bus.ObjectInfo](t)(o.Info(ctx, "x"))
}

// TestObjectsAreThoseOfNATS: the `nats` tool and every client library read what we put, and we what they put.
func TestObjectsAreThoseOfNATS(t *testing.T) {
	t.Parallel()
	server := embedded(t, nil)
	js := raw(t, server)
	b := dial(t, server, quick(), bus.Events{})
	ctx := t.Context()
	noError(t, b.Setup(ctx, topology))
	o := must[bus.Objects](t)(b.Objects(ctx, "o"))
	theirs := must[jetstream.ObjectStore](t)(js.ObjectStore(ctx, "o"))
	data := bytes.Repeat([]byte("proof"), 500_000)
	must[bus.ObjectInfo](t)(o.Put(ctx, "ours", bytes.NewReader(data), map[string]string{"k": "v"}))
	if got := must[[]byte](t)(theirs.GetBytes(ctx, "ours")); !bytes.Equal(got, data) {
		t.Error("their reader gives other bytes")
	}
	must[*jetstream.ObjectInfo](t)(theirs.PutBytes(ctx, "theirs", data))
	r, info, err := o.Get(ctx, "theirs", 1<<30)
	noError(t, err)
	if got := must[[]byte](t)(io.ReadAll(r)); !bytes.Equal(got, data) || int(info.Bytes) != len(data) {
		t.Error("our reader gives other bytes")
	}
	if list := must[[]bus.ObjectInfo](t)(o.List(ctx)); len(list) != 2 {
		t.Errorf("%d objects", len(list))
	}
}

// TestChangedObjectsAreCorrupt changes a stored object in three ways; none is read to its end without an error.
func TestChangedObjectsAreCorrupt(t *testing.T) {
	t.Parallel()
	server := embedded(t, nil)
	js := raw(t, server)
	b := dial(t, server, quick(), bus.Events{})
	ctx := t.Context()
	noError(t, b.Setup(ctx, topology))
	o := must[bus.Objects](t)(b.Objects(ctx, "o"))
	stream := must[jetstream.Stream](t)(js.Stream(ctx, "OBJ_o"))
	for name, c := range map[string]struct {
		spoil func(sequence uint64, subject string) error
		want  fault.Kind
	}{
		"piece lost": {func(sequence uint64, _ string) error { return stream.DeleteMsg(ctx, sequence) }, fault.Corrupt},
		"piece changed": {func(sequence uint64, subject string) error {
			if err := stream.DeleteMsg(ctx, sequence); err != nil {
				return err
			}
			_, err := js.Publish(ctx, subject, []byte("other"))
			return err
		}, fault.Corrupt},
		"replaced": {func(uint64, string) error {
			_, err := o.Put(ctx, "replaced", strings.NewReader("new"), nil)
			return err
		}, fault.Transient},
	} {
		must[bus.ObjectInfo](t)(o.Put(ctx, name, bytes.NewReader(make([]byte, 2<<20)), nil))
		r, _, err := o.Get(ctx, name, 1<<30)
		noError(t, err)
		last := must[*jetstream.RawStreamMsg](t)(stream.GetLastMsgForSubject(ctx, "$O.o.C.>"))
		noError(t, c.spoil(last.Sequence, last.Subject))
		if _, err := io.ReadAll(r); fault.KindOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadingGoesOnOverARestart restarts the server in the middle of an object.
func TestReadingGoesOnOverARestart(t *testing.T) {
	t.Parallel()
	server := embedded(t, nil)
	b := dial(t, server, quick(), bus.Events{})
	ctx := t.Context()
	noError(t, b.Setup(ctx, topology))
	o := must[bus.Objects](t)(b.Objects(ctx, "o"))
	data := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	must[bus.ObjectInfo](t)(o.Put(ctx, "x", bytes.NewReader(data), nil))
	r, _, err := o.Get(ctx, "x", 1<<30)
	noError(t, err)
	half := make([]byte, len(data)/2)
	must[int](t)(io.ReadFull(r, half))
	server.Stop()
	noError(t, server.Start())
	rest := must[[]byte](t)(io.ReadAll(r))
	if !bytes.Equal(append(half, rest...), data) {
		t.Error("other bytes after the restart")
	}
}

// TestMarksOfDeletedKeysEnd: the mark of a deletion goes by itself, without a further one and without word to watches.
func TestMarksOfDeletedKeysEnd(t *testing.T) {
	t.Parallel()
	server := embedded(t, nil)
	js := raw(t, server)
	b := dial(t, server, quick(), bus.Events{})
	ctx := t.Context()
	noError(t, b.Setup(ctx, topology))
	kv := must[bus.KV](t)(b.KV(ctx, "b"))
	must[uint64](t)(kv.Create(ctx, "k", []byte("1")))
	seen := watch(t, kv)
	seen.want(t, "k=1 false")
	bucket := must[jetstream.KeyValue](t)(js.KeyValue(ctx, "b"))
	noError(t, bucket.Purge(ctx, "k", jetstream.PurgeTTL(time.Second)))
	seen.want(t, "k= true")
	stream := must[jetstream.Stream](t)(js.Stream(ctx, "KV_b"))
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if info := must[*jetstream.StreamInfo](t)(stream.Info(ctx)); info.State.Msgs == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the mark stays")
		}
	}
	select {
	case s := <-seen.told:
		t.Errorf("told %s when the mark ended", s)
	case <-time.After(50 * time.Millisecond):
	}
}
