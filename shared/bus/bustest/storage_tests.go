package bustest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

func (s *suite) bucket() bus.KV {
	s.Helper()
	name := "b-" + s.prefix
	s.setup(bus.Topology{Buckets: []bus.Bucket{{Name: name, BytesMax: 1 << 20}}})
	kv, err := s.bus.KV(s.ctx, name)
	s.must(err)
	return kv
}

func keys(s *suite) {
	kv := s.bucket()
	_, err := kv.Get(s.ctx, "job.1")
	s.wantKind(err, fault.NotFound)
	first, err := kv.Create(s.ctx, "job.1", []byte("a"))
	s.must(err)
	_, err = kv.Create(s.ctx, "job.1", []byte("b"))
	s.wantKind(err, fault.Conflict)
	second, err := kv.Update(s.ctx, "job.1", []byte("c"), first)
	s.must(err)
	_, err = kv.Update(s.ctx, "job.1", []byte("d"), first)
	s.wantKind(err, fault.Conflict)
	_, err = kv.Update(s.ctx, "job.2", []byte("d"), 1)
	s.wantKind(err, fault.Conflict)
	_, err = kv.Update(s.ctx, "job.2", []byte("d"), 0)
	s.wantKind(err, fault.Conflict)
	e, err := kv.Get(s.ctx, "job.1")
	s.must(err)
	if string(e.Value) != "c" || e.Revision != second || second <= first || time.Since(e.At) > time.Minute {
		s.Errorf("entry %+v", e)
	}
	_, err = kv.Create(s.ctx, "job.10.x", nil)
	s.must(err)
	_, err = kv.Create(s.ctx, "jobs", []byte("not under job."))
	s.must(err)
	list, err := kv.Keys(s.ctx, "job.")
	if diff := cmp.Diff([]string{"job.1", "job.10.x"}, list); err != nil || diff != "" {
		s.Errorf("%v %s", err, diff)
	}
	s.wantKind(kv.Delete(s.ctx, "job.1", first), fault.Conflict)
	s.must(kv.Delete(s.ctx, "job.1", second))
	s.wantKind(kv.Delete(s.ctx, "job.1", second), fault.NotFound)
	s.wantKind(kv.Delete(s.ctx, "job.1", 0), fault.NotFound)
	_, err = kv.Get(s.ctx, "job.1")
	s.wantKind(err, fault.NotFound)
	_, err = kv.Update(s.ctx, "job.1", []byte("d"), second)
	s.wantKind(err, fault.Conflict)
	list, err = kv.Keys(s.ctx, "")
	if diff := cmp.Diff([]string{"job.10.x", "jobs"}, list); err != nil || diff != "" {
		s.Errorf("%v %s", err, diff)
	}
	list, err = kv.Keys(s.ctx, "none.")
	if err != nil || len(list) != 0 {
		s.Errorf("%v, %v", list, err)
	}
	again, err := kv.Create(s.ctx, "job.1", []byte("new"))
	if err != nil || again <= second {
		s.Errorf("created again at %d, %v", again, err)
	}
	s.must(kv.Delete(s.ctx, "job.1", 0))
	for _, bad := range []string{"", "a.", "a b", "*", ">"} {
		_, err := kv.Create(s.ctx, bad, nil)
		s.wantKind(err, fault.Invalid)
	}
	_, err = kv.Keys(s.ctx, "jo")
	s.wantKind(err, fault.Invalid)
}

// race: of many writers at one revision one wins (invariant 5 stands on this).
func race(s *suite) {
	kv := s.bucket()
	revision, err := kv.Create(s.ctx, "k", []byte("0"))
	s.must(err)
	for round := range 5 {
		var (
			wg    sync.WaitGroup
			won   atomic.Int64
			next  atomic.Uint64
			start = make(chan struct{})
		)
		for w := range 8 {
			wg.Go(func() {
				<-start
				r, err := kv.Update(s.ctx, "k", []byte(fmt.Sprint(w)), revision)
				if err == nil {
					won.Add(1)
					next.Store(r)
				} else {
					s.wantKind(err, fault.Conflict)
				}
			})
		}
		close(start)
		wg.Wait()
		if won.Load() != 1 {
			s.Fatalf("round %d: %d writers won", round, won.Load())
		}
		revision = next.Load()
	}
}

func watches(s *suite) {
	kv := s.bucket()
	for _, key := range []string{"job.1", "job.2", "other.1", "job.gone"} {
		_, err := kv.Create(s.ctx, key, []byte(key))
		s.must(err)
	}
	s.must(kv.Delete(s.ctx, "job.gone", 0))
	told := make(chan string, 64)
	stop, err := kv.Watch(s.ctx, "job.", func(e bus.Entry) {
		told <- fmt.Sprintf("%s=%s %v", e.Key, e.Value, e.Deleted)
	}, func() { told <- "ready" })
	s.must(err)
	present := map[string]bool{await(s, "entry", told): true, await(s, "entry", told): true}
	if !present["job.1=job.1 false"] || !present["job.2=job.2 false"] {
		s.Errorf("present values %v", present)
	}
	if got := await(s, "ready", told); got != "ready" {
		s.Fatalf("%s instead of ready", got)
	}
	revision, err := kv.Create(s.ctx, "job.3", []byte("x"))
	s.must(err)
	_, err = kv.Create(s.ctx, "other.2", nil)
	s.must(err)
	_, err = kv.Update(s.ctx, "job.3", []byte("y"), revision)
	s.must(err)
	s.must(kv.Delete(s.ctx, "job.1", 0))
	for _, want := range []string{"job.3=x false", "job.3=y false", "job.1= true"} {
		if got := await(s, want, told); got != want {
			s.Errorf("told %s, want %s", got, want)
		}
	}
	stop()
	stop()
	_, err = kv.Create(s.ctx, "job.4", nil)
	s.must(err)
	select {
	case got := <-told:
		s.Errorf("%s after stop", got)
	case <-time.After(50 * time.Millisecond):
	}

	empty, cancel := context.WithCancel(s.ctx)
	ready := make(chan struct{})
	_, err = kv.Watch(empty, "none.", func(bus.Entry) { s.Error("an entry of nothing") }, func() { close(ready) })
	s.must(err)
	await(s, "ready of an empty prefix", ready)
	cancel()
}

func (s *suite) objectBucket() bus.Objects {
	s.Helper()
	name := "o-" + s.prefix
	s.setup(bus.Topology{Objects: []bus.ObjectBucket{{Name: name, BytesMax: 64 << 20}}})
	o, err := s.bus.Objects(s.ctx, name)
	s.must(err)
	return o
}

func (s *suite) put(o bus.Objects, name string, data []byte) {
	s.Helper()
	sum := sha256.Sum256(data)
	info, err := o.Put(s.ctx, name, bytes.NewReader(data), map[string]string{"k": "v"})
	s.must(err)
	if info.SHA256 != hex.EncodeToString(sum[:]) || int(info.Bytes) != len(data) || info.Name != name ||
		info.Meta["k"] != "v" || time.Since(info.Modified).Abs() > time.Minute {
		s.Errorf("put %s: %+v", name, info)
	}
}

func (s *suite) get(o bus.Objects, name string) []byte {
	s.Helper()
	r, info, err := o.Get(s.ctx, name, 64<<20)
	s.must(err)
	data, err := io.ReadAll(r)
	s.must(err)
	s.must(r.Close())
	if int(info.Bytes) != len(data) {
		s.Errorf("%s: %d bytes, not %d", name, len(data), info.Bytes)
	}
	return data
}

func objects(s *suite) {
	o := s.objectBucket()
	_, _, err := o.Get(s.ctx, "none", 1<<20)
	s.wantKind(err, fault.NotFound)
	_, err = o.Info(s.ctx, "none")
	s.wantKind(err, fault.NotFound)
	s.wantKind(o.Delete(s.ctx, "none"), fault.NotFound)
	var want []string
	for i, size := range []int{0, 1, 1 << 10, 1<<20 - 512, 1 << 20, 3<<20 + 7} {
		data := bytes.Repeat([]byte{byte(i), 7, 0}, size/3+1)[:size]
		name := fmt.Sprintf("%d/ü %d", i, size)
		want = append(want, name)
		s.put(o, name, data)
		if !bytes.Equal(s.get(o, name), data) {
			s.Errorf("object of %d bytes changed", size)
		}
	}
	list, err := o.List(s.ctx)
	s.must(err)
	var names []string
	for _, info := range list {
		names = append(names, info.Name)
		one, err := o.Info(s.ctx, info.Name)
		if diff := cmp.Diff(info, one); err != nil || diff != "" {
			s.Error(err, diff)
		}
	}
	if diff := cmp.Diff(want, names); diff != "" {
		s.Error(diff)
	}
	_, _, err = o.Get(s.ctx, want[5], 1<<20)
	s.wantKind(err, fault.Invalid)
	for _, name := range want[1:] {
		s.must(o.Delete(s.ctx, name))
	}
	list, err = o.List(s.ctx)
	if err != nil || len(list) != 1 {
		s.Errorf("%d objects after deletion, %v", len(list), err)
	}
	for i := range 5 { // over one name
		s.put(o, want[0], []byte(strings.Repeat("x", i+1)))
	}
	if got := string(s.get(o, want[0])); got != "xxxxx" {
		s.Errorf("got %q", got)
	}
	usage, err := o.Usage(s.ctx)
	if err != nil || usage.Live != 5 || usage.Partial != 0 {
		s.Errorf("usage %+v, %v", usage, err)
	}
	_, err = o.Put(s.ctx, "", strings.NewReader("x"), nil)
	s.wantKind(err, fault.Invalid)
}

var errBroken = errors.New("the reader broke")

type broken struct{ left int }

func (b *broken) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errBroken
	}
	n := min(len(p), b.left)
	b.left -= n
	return n, nil
}

// b67: an upload that breaks off, ten times, and one name five times over: what is stored is what lives.
func b67(s *suite) {
	o := s.objectBucket()
	for range 10 {
		_, err := o.Put(s.ctx, "half", &broken{left: 5 << 19}, nil)
		if !errors.Is(err, errBroken) {
			s.Fatal(err)
		}
	}
	_, _, err := o.Get(s.ctx, "half", 64<<20)
	s.wantKind(err, fault.NotFound)
	for range 5 {
		s.put(o, "same", bytes.Repeat([]byte("x"), 5<<18))
	}
	_, err = o.Sweep(s.ctx, time.Now().Add(time.Minute))
	s.must(err)
	usage, err := o.Usage(s.ctx)
	s.must(err)
	if usage.Live != 5<<18 || usage.Partial != 0 || usage.Stored < usage.Live || usage.Stored > usage.Live+64<<10 {
		s.Errorf("usage %+v, want about %d", usage, 5<<18)
	}
	if len(s.get(o, "same")) != 5<<18 {
		s.Error("the live object is not whole")
	}
}
