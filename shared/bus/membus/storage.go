package membus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

type bucket struct {
	cfg      bus.Bucket
	entries  map[string]bus.Entry
	bytes    int64
	revision uint64
	watches  []*watch
}

type kv struct {
	b    *Bus
	name string
}

// KV opens a bucket of records.
func (b *Bus) KV(ctx context.Context, name string) (bus.KV, error) {
	if err := bus.CheckName("bucket", name); err != nil {
		return nil, err
	}
	err := b.do(ctx, Read, "open bucket", name, func() error {
		if b.s.buckets[name] == nil {
			return fault.New(fault.NotFound, "no such bucket")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &kv{b, name}, nil
}

func (k *kv) do(ctx context.Context, kind Kind, what, key string, call func(*bucket) error) error {
	return k.b.do(ctx, kind, what, k.name+"/"+key, func() error {
		bucket := k.b.s.buckets[k.name]
		if bucket == nil {
			return fault.New(fault.Transient, "bucket not set up")
		}
		return call(bucket)
	})
}

func (k *kv) Get(ctx context.Context, key string) (e bus.Entry, err error) {
	if err := bus.CheckKey(key); err != nil {
		return e, err
	}
	err = k.do(ctx, Read, "get", key, func(b *bucket) error {
		found, ok := b.entries[key]
		if !ok {
			return fault.New(fault.NotFound, "no such key")
		}
		e = found
		e.Value = slices.Clone(found.Value)
		return nil
	})
	return e, err
}

// write stores an entry if the key's revision is the one expected (0: not there).
func (k *kv) write(ctx context.Context, what, key string, value []byte, expected uint64) (revision uint64, err error) {
	if err := bus.CheckKey(key); err != nil {
		return 0, err
	}
	err = k.do(ctx, Write, what, key, func(b *bucket) error {
		have := b.entries[key]
		if have.Revision != expected {
			return fault.New(fault.Conflict, "its revision is %d, not %d", have.Revision, expected)
		}
		if len(value) > messageBytesMax || b.cfg.ValueBytesMax > 0 && int64(len(value)) > int64(b.cfg.ValueBytesMax) {
			return fault.New(fault.Invalid, "value of %d bytes is too large", len(value))
		}
		grown := b.bytes + int64(len(value)+len(key))
		if expected != 0 {
			grown -= int64(len(have.Value) + len(key))
		}
		if b.cfg.BytesMax > 0 && grown > int64(b.cfg.BytesMax) {
			return fault.New(fault.Exhausted, "bucket is full")
		}
		b.bytes = grown
		b.revision++
		revision = b.revision
		b.put(bus.Entry{Key: key, Value: slices.Clone(value), Revision: revision, At: k.b.s.now()})
		return nil
	})
	return revision, err
}

func (b *bucket) put(e bus.Entry) {
	if e.Deleted {
		delete(b.entries, e.Key)
	} else {
		b.entries[e.Key] = e
	}
	for _, w := range b.watches {
		w.tell(e)
	}
}

func (k *kv) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	return k.write(ctx, "create", key, value, 0)
}

func (k *kv) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if revision == 0 {
		return 0, fault.New(fault.Conflict, "update %s/%s: revision 0 is none that a key can have", k.name, key)
	}
	return k.write(ctx, "update", key, value, revision)
}

func (k *kv) Delete(ctx context.Context, key string, revision uint64) error {
	if err := bus.CheckKey(key); err != nil {
		return err
	}
	return k.do(ctx, Write, "delete", key, func(b *bucket) error {
		have, ok := b.entries[key]
		if !ok {
			return fault.New(fault.NotFound, "no such key")
		}
		if revision != 0 && have.Revision != revision {
			return fault.New(fault.Conflict, "its revision is %d, not %d", have.Revision, revision)
		}
		b.bytes -= int64(len(have.Value) + len(key))
		b.revision++
		b.put(bus.Entry{Key: key, Revision: b.revision, Deleted: true, At: k.b.s.now()})
		return nil
	})
}

func (b *bucket) under(prefix string) []string {
	keys := []string{}
	for key := range b.entries {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (k *kv) Keys(ctx context.Context, prefix string) (keys []string, err error) {
	if err := bus.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	err = k.do(ctx, Read, "list", prefix, func(b *bucket) error {
		keys = b.under(prefix)
		return nil
	})
	return keys, err
}

// watch calls functions in order, on a goroutine of its own or by the clock.
type watch struct {
	prefix string
	see    func(bus.Entry)
	clock  Clock

	mu      sync.Mutex
	waiting []func()
	stopped bool
	wake    chan struct{}
}

func (w *watch) tell(e bus.Entry) {
	if !strings.HasPrefix(e.Key, w.prefix) {
		return
	}
	e.Value = slices.Clone(e.Value)
	w.post(func() { w.see(e) })
}

func (w *watch) post(f func()) {
	if w.clock != nil {
		w.clock.AfterFunc(0, func() {
			if !w.isStopped() {
				f()
			}
		})
		return
	}
	w.mu.Lock()
	w.waiting = append(w.waiting, f)
	w.mu.Unlock()
	w.poke()
}

func (w *watch) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watch) isStopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

func (w *watch) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.poke()
}

func (w *watch) run(ctx context.Context) {
	for {
		w.mu.Lock()
		var next func()
		if len(w.waiting) > 0 {
			next, w.waiting = w.waiting[0], w.waiting[1:]
		}
		stopped := w.stopped
		w.mu.Unlock()
		switch {
		case stopped || ctx.Err() != nil:
			return
		case next != nil:
			next()
		default:
			select {
			case <-w.wake:
			case <-ctx.Done():
			}
		}
	}
}

// Watch follows the keys under a prefix. It misses nothing while the server is cut, but ends when it is wiped.
func (k *kv) Watch(ctx context.Context, prefix string, see func(bus.Entry), ready func()) (stop func(), err error) {
	if err := bus.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	w := &watch{prefix: prefix, see: see, clock: k.b.s.cfg.Clock, wake: make(chan struct{}, 1)}
	err = k.do(ctx, Read, "watch", prefix, func(b *bucket) error {
		for _, key := range b.under(prefix) {
			w.tell(b.entries[key])
		}
		w.post(ready)
		b.watches = append(b.watches, w)
		return nil
	})
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	if w.clock != nil {
		close(done)
	} else {
		go func() {
			defer close(done)
			w.run(ctx)
		}()
	}
	return k.b.onClose(func() {
		w.stop()
		k.b.s.mu.Lock()
		if b := k.b.s.buckets[k.name]; b != nil {
			b.watches = slices.DeleteFunc(b.watches, func(other *watch) bool { return other == w })
		}
		k.b.s.mu.Unlock()
		<-done
	}), nil
}

type object struct {
	info bus.ObjectInfo
	data []byte
}

type objectBucket struct {
	cfg     bus.ObjectBucket
	objects map[string]object
	bytes   int64
}

type objects struct {
	b    *Bus
	name string
}

// Objects opens a bucket of objects.
func (b *Bus) Objects(ctx context.Context, name string) (bus.Objects, error) {
	if err := bus.CheckName("object bucket", name); err != nil {
		return nil, err
	}
	o := &objects{b, name}
	if err := o.do(ctx, Read, "open bucket", "", func(*objectBucket) error { return nil }); err != nil {
		return nil, err
	}
	return o, nil
}

func (o *objects) do(ctx context.Context, kind Kind, what, name string, call func(*objectBucket) error) error {
	return o.b.do(ctx, kind, what, o.name+"/"+name, func() error {
		bucket := o.b.s.objects[o.name]
		if bucket == nil {
			return fault.New(fault.NotFound, "no such bucket")
		}
		return call(bucket)
	})
}

func (o *objects) Put(
	ctx context.Context, name string, r io.Reader, meta map[string]string,
) (info bus.ObjectInfo, err error) {
	if err := bus.CheckObjectName(name); err != nil {
		return info, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return info, fmt.Errorf("put object %s/%s: read what is to be stored: %w", o.name, name, err)
	}
	sum := sha256.Sum256(data)
	err = o.do(ctx, Write, "put object", name, func(b *objectBucket) error {
		grown := b.bytes + int64(len(data)) - int64(len(b.objects[name].data))
		if b.cfg.BytesMax > 0 && grown > int64(b.cfg.BytesMax) {
			return fault.New(fault.Exhausted, "bucket is full")
		}
		b.bytes = grown
		info = bus.ObjectInfo{
			Name: name, Bytes: bytesize.Bytes(len(data)), SHA256: hex.EncodeToString(sum[:]), Modified: o.b.s.now(),
			Meta: maps.Clone(meta),
		}
		b.objects[name] = object{info, data}
		return nil
	})
	return info, err
}

func (o *objects) find(ctx context.Context, name string) (out object, err error) {
	if err := bus.CheckObjectName(name); err != nil {
		return out, err
	}
	err = o.do(ctx, Read, "find object", name, func(b *objectBucket) error {
		var ok bool
		if out, ok = b.objects[name]; !ok {
			return fault.New(fault.NotFound, "no such object")
		}
		return nil
	})
	return out, err
}

func (o *objects) Info(ctx context.Context, name string) (bus.ObjectInfo, error) {
	found, err := o.find(ctx, name)
	return found.info, err
}

func (o *objects) Get(ctx context.Context, name string, bytesMax int64) (io.ReadCloser, bus.ObjectInfo, error) {
	found, err := o.find(ctx, name)
	if err != nil {
		return nil, bus.ObjectInfo{}, err
	}
	if int64(len(found.data)) > bytesMax {
		return nil, bus.ObjectInfo{}, fault.New(fault.Invalid, "object %s/%s has %s; at most %d bytes are taken",
			o.name, name, found.info.Bytes, bytesMax)
	}
	return io.NopCloser(bytes.NewReader(found.data)), found.info, nil
}

func (o *objects) Delete(ctx context.Context, name string) error {
	if _, err := o.find(ctx, name); err != nil {
		return err
	}
	return o.do(ctx, Write, "delete object", name, func(b *objectBucket) error {
		b.bytes -= int64(len(b.objects[name].data))
		delete(b.objects, name)
		return nil
	})
}

func (o *objects) List(ctx context.Context) (out []bus.ObjectInfo, err error) {
	err = o.do(ctx, Read, "list objects", "", func(b *objectBucket) error {
		out = []bus.ObjectInfo{}
		for _, name := range slices.Sorted(maps.Keys(b.objects)) {
			out = append(out, b.objects[name].info)
		}
		return nil
	})
	return out, err
}

func (o *objects) Usage(ctx context.Context) (u bus.ObjectUsage, err error) {
	err = o.do(ctx, Read, "count objects", "", func(b *objectBucket) error {
		u = bus.ObjectUsage{Stored: bytesize.Bytes(b.bytes), Live: bytesize.Bytes(b.bytes)}
		return nil
	})
	return u, err
}

// Sweep finds nothing: a put is stored whole or not at all here.
func (o *objects) Sweep(ctx context.Context, _ time.Time) (bytesize.Bytes, error) {
	return 0, o.do(ctx, Write, "sweep objects", "", func(*objectBucket) error { return nil })
}
