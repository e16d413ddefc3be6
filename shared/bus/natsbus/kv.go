package natsbus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

type kv struct {
	b      *Bus
	bucket string
	kv     jetstream.KeyValue
}

// KV opens a bucket of records.
func (b *Bus) KV(ctx context.Context, bucket string) (bus.KV, error) {
	if err := bus.CheckName("bucket", bucket); err != nil {
		return nil, err
	}
	ctx, cancel, err := b.call(ctx)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", bucket, err)
	}
	defer cancel()
	var store jetstream.KeyValue
	err = b.found(ctx, func(ctx context.Context) (err error) {
		store, err = b.js.KeyValue(ctx, bucket)
		return err
	})
	if err != nil {
		return nil, b.wrap(err, "open bucket %s", bucket)
	}
	return &kv{b: b, bucket: bucket, kv: store}, nil
}

// do runs one call on a checked key.
func (k *kv) do(ctx context.Context, what, key string, call func(context.Context) error) error {
	if err := bus.CheckKey(key); err != nil {
		return err
	}
	ctx, cancel, err := k.b.call(ctx)
	if err != nil {
		return fmt.Errorf("%s key %s of %s: %w", what, key, k.bucket, err)
	}
	defer cancel()
	if what == "get" {
		err = k.b.answered(ctx, func(ctx context.Context) error {
			err := call(ctx)
			if notSetUp(err) {
				k.b.wakeGuard()
			}
			return err
		})
	} else {
		err = k.b.attempt(ctx, 0, call)
	}
	if notSetUp(err) {
		k.b.wakeGuard()
		err = fault.As(fault.Transient, fmt.Errorf("bucket not set up: %w", err))
	}
	return k.b.wrap(err, "%s key %s of %s", what, key, k.bucket)
}

func (k *kv) Get(ctx context.Context, key string) (e bus.Entry, err error) {
	err = k.do(ctx, "get", key, func(ctx context.Context) error {
		entry, err := k.kv.Get(ctx, key)
		if err == nil {
			e = bus.Entry{Key: key, Value: entry.Value(), Revision: entry.Revision(), At: entry.Created()}
		}
		return err
	})
	return e, err
}

func (k *kv) Create(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	err = k.do(ctx, "create", key, func(ctx context.Context) (err error) {
		revision, err = k.kv.Create(ctx, key, value)
		return err
	})
	return revision, err
}

func (k *kv) Update(ctx context.Context, key string, value []byte, revision uint64) (next uint64, err error) {
	err = k.do(ctx, "update", key, func(ctx context.Context) (err error) {
		if revision == 0 {
			return fault.New(fault.Conflict, "revision 0 is none that a key can have")
		}
		next, err = k.kv.Update(ctx, key, value, revision)
		return err
	})
	return next, err
}

func (k *kv) Delete(ctx context.Context, key string, revision uint64) error {
	return k.do(ctx, "delete", key, func(ctx context.Context) error {
		for n := 0; ; n++ {
			entry, err := k.kv.Get(ctx, key)
			if err != nil {
				return err
			}
			if revision != 0 && entry.Revision() != revision {
				return fault.New(fault.Conflict, "its revision is %d, not %d", entry.Revision(), revision)
			}
			err = k.kv.Purge(ctx, key, jetstream.LastRevision(entry.Revision()), jetstream.PurgeTTL(markerTTL))
			if kindOf(err) != fault.Conflict || revision != 0 || k.b.pause(ctx, n) != nil {
				return err
			}
		}
	})
}

func (k *kv) subject(prefix string) string { return "$KV." + k.bucket + "." + prefix + ">" }

func (k *kv) Keys(ctx context.Context, prefix string) ([]string, error) {
	if err := bus.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	ctx, cancel := k.b.many(ctx)
	defer cancel()
	var keys []string
	var err error
	for n := 0; ; n++ {
		keys = []string{}
		err = k.b.list(ctx, kvStream(k.bucket), k.subject(prefix), true, func(m jetstream.Msg) {
			if !deletion(m.Headers()) {
				keys = append(keys, k.key(m.Subject()))
			}
		})
		if kindOf(err) != fault.Transient || k.b.pause(ctx, n) != nil || k.b.waitUp(ctx) != nil {
			break
		}
	}
	if err != nil {
		return nil, k.b.wrap(err, "list keys %s* of %s", prefix, k.bucket)
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil // a key written meanwhile comes twice
}

func (k *kv) key(subject string) string { return strings.TrimPrefix(subject, "$KV."+k.bucket+".") }

// deletion tells marks of deleted keys.
func deletion(h nats.Header) bool {
	op := h.Get("KV-Operation")
	return op == "DEL" || op == "PURGE" || h.Get(jetstream.MarkerReasonHeader) != ""
}

// Watch follows the keys under a prefix.
func (k *kv) Watch(ctx context.Context, prefix string, see func(bus.Entry), ready func()) (stop func(), err error) {
	if err := bus.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	first, err := k.firstScan(ctx, prefix)
	if err != nil {
		return nil, k.b.wrap(err, "watch keys %s* of %s", prefix, k.bucket)
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{kv: k, subject: k.subject(prefix), see: see, ready: ready, known: map[string]uint64{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(ctx, first)
	}()
	end := sync.OnceFunc(func() { cancel(); <-done })
	off := k.b.onClose(end)
	go func() { // a watch that ended with its context needs no end by Close
		<-done
		off()
		cancel()
	}()
	return end, nil
}

// firstScan opens a scan, again within the call timeout while servers are not ready for it.
func (k *kv) firstScan(ctx context.Context, prefix string) (*scan, error) {
	begun := time.Now()
	for n := 0; ; n++ {
		s, err := k.b.openScan(ctx, kvStream(k.bucket), k.subject(prefix), false)
		if kindOf(err) != fault.Transient || time.Since(begun) > k.b.cfg.CallTimeout || k.b.pause(ctx, n) != nil {
			return s, err
		}
	}
}

// watch is one call of Watch. Each pass reads everything and then follows; what is known from earlier passes is told
// only where it differs.
type watch struct {
	kv      *kv
	subject string
	see     func(bus.Entry)
	ready   func()
	known   map[string]uint64 // revisions of the keys that are there
}

func (w *watch) run(ctx context.Context, s *scan) {
	for n := 0; ctx.Err() == nil; n++ {
		var err error
		if s == nil {
			if err = w.kv.b.waitUp(ctx); err == nil {
				s, err = w.kv.b.openScan(ctx, kvStream(w.kv.bucket), w.subject, false)
			}
		}
		if s != nil {
			var got bool
			got, err = w.pass(ctx, s)
			s.close()
			s = nil
			if got {
				n = 0
			}
		}
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			w.kv.b.wakeGuard()
		}
		if n == 1 {
			w.kv.b.trouble(w.kv.b.wrap(err, "watch bucket %s", w.kv.bucket))
		}
		_ = w.kv.b.pause(ctx, n) // the loop looks at ctx
	}
}

// pass reads everything, then follows until something breaks. It tells whether it read everything.
func (w *watch) pass(ctx context.Context, s *scan) (complete bool, err error) {
	there := map[string]bool{}
	for {
		if !complete && s.pending == 0 {
			if err := s.whole(ctx); err != nil {
				return false, err
			}
			complete = true
			w.settle(there)
		}
		msg, meta, err := s.next(ctx)
		if err != nil {
			return complete, err
		}
		if msg == nil {
			continue
		}
		e := bus.Entry{
			Key: w.kv.key(msg.Subject()), Revision: meta.Sequence.Stream, At: meta.Timestamp, Deleted: deletion(msg.Headers()),
		}
		revision, known := w.known[e.Key]
		switch {
		case e.Deleted && !complete:
			continue // settle tells it, if it was known
		case e.Deleted:
			delete(w.known, e.Key)
			if !known && msg.Headers().Get(jetstream.MarkerReasonHeader) != "" {
				continue // the mark of a deletion told before has ended
			}
			w.see(e)
		default:
			there[e.Key] = true
			w.known[e.Key] = e.Revision
			if !known || revision != e.Revision {
				e.Value = msg.Data()
				w.see(e)
			}
		}
	}
}

// settle tells keys that are gone since the last pass, and that the present values are complete.
func (w *watch) settle(there map[string]bool) {
	for key, revision := range w.known {
		if !there[key] {
			delete(w.known, key)
			w.see(bus.Entry{Key: key, Revision: revision, Deleted: true})
		}
	}
	w.ready()
}
