package natsbus

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// markerTTL is how long the mark of a deleted key stays. Watches that were away for longer still find out.
const markerTTL = time.Hour

// want is one stream that must be there: a stream proper, or that of a bucket.
type want struct {
	what  string // for people: "stream C2_SYNTH", "bucket c2-jobs"
	name  string // the stream's
	apply func(*jetstream.StreamConfig)
}

func kvStream(bucket string) string     { return "KV_" + bucket }
func objectStream(bucket string) string { return "OBJ_" + bucket }

// wants turns a topology into streams.
func wants(t bus.Topology) []want {
	var out []want
	replicas := max(1, t.Replicas)
	for _, s := range t.Streams {
		out = append(out, want{"stream " + s.Name, s.Name, func(c *jetstream.StreamConfig) {
			common(c, s.BytesMax, s.MessageBytesMax, replicas)
			c.Subjects, c.MaxAge, c.MaxMsgs = s.Subjects, s.AgeMax, orNone(s.MessagesMax)
			c.Retention, c.Discard = jetstream.LimitsPolicy, jetstream.DiscardNew
			if s.Retention == bus.WorkQueue {
				c.Retention = jetstream.WorkQueuePolicy
			}
			if s.DropOldest {
				c.Discard = jetstream.DiscardOld
			}
			c.Duplicates = s.DuplicateWindow
			if c.Duplicates == 0 {
				c.Duplicates = bus.DuplicateWindowDefault
			}
			if s.AgeMax > 0 {
				c.Duplicates = min(c.Duplicates, s.AgeMax) // the server demands it
			}
			c.AllowDirect = replicas == 1
		}})
	}
	for _, b := range t.Buckets {
		out = append(out, want{"bucket " + b.Name, kvStream(b.Name), func(c *jetstream.StreamConfig) {
			common(c, b.BytesMax, b.ValueBytesMax, replicas)
			c.Subjects, c.MaxMsgsPerSubject = []string{"$KV." + b.Name + ".>"}, 1
			c.Retention, c.Discard = jetstream.LimitsPolicy, jetstream.DiscardNew
			c.AllowRollup, c.DenyDelete = true, true
			c.AllowMsgTTL, c.SubjectDeleteMarkerTTL = true, markerTTL
			// A direct read may be answered by a replica that is behind; whoever wrote must read what was written.
			c.AllowDirect = replicas == 1
		}})
	}
	for _, b := range t.Objects {
		out = append(out, want{"object bucket " + b.Name, objectStream(b.Name), func(c *jetstream.StreamConfig) {
			common(c, b.BytesMax, 0, replicas)
			c.Subjects = []string{"$O." + b.Name + ".C.>", "$O." + b.Name + ".M.>"}
			c.Retention, c.Discard = jetstream.LimitsPolicy, jetstream.DiscardNew
			c.AllowRollup, c.AllowDirect = true, replicas == 1
		}})
	}
	return out
}

func common(c *jetstream.StreamConfig, bytesMax, messageBytesMax bytesize.Bytes, replicas int) {
	c.Storage, c.Replicas = jetstream.FileStorage, replicas
	c.MaxBytes = orNone(int64(bytesMax))
	c.MaxMsgSize = int32(min(orNone(int64(messageBytesMax)), 1<<30)) //nolint:gosec // bounded
	c.MaxConsumers = -1
}

// orNone gives the server's word for no limit.
func orNone(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

// Setup makes the streams and buckets of a topology, or changes them to it. From then on this connection makes those
// again that somebody deletes.
func (b *Bus) Setup(ctx context.Context, t bus.Topology) error {
	if err := t.Validate(); err != nil {
		return fmt.Errorf("set up streams: %w", err)
	}
	ctx, cancel := b.many(ctx)
	defer cancel()
	if err := b.waitUp(ctx); err != nil {
		return fmt.Errorf("set up streams: %w", err)
	}
	all := wants(t)
	var errs []error
	for _, w := range all {
		if _, err := b.ensure(ctx, w, true); err != nil {
			errs = append(errs, err)
			if kindOf(err) == fault.Transient {
				break // the rest would wait as long, for nothing
			}
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	b.guard(all)
	return nil
}

// ensure makes a stream that is not there, and changes one that differs if change is set.
func (b *Bus) ensure(ctx context.Context, w want, change bool) (made bool, err error) {
	stream, err := b.js.Stream(ctx, w.name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		cfg := jetstream.StreamConfig{Name: w.name}
		w.apply(&cfg)
		_, err = b.js.CreateStream(ctx, cfg)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) && change {
			return b.ensure(ctx, w, false) // somebody else was faster; the next start compares
		}
		return err == nil, b.setupError(ctx, w, cfg, err)
	case err != nil:
		return false, b.setupError(ctx, w, jetstream.StreamConfig{}, err)
	case !change:
		return false, nil
	}
	have := stream.CachedInfo().Config
	cfg := have
	w.apply(&cfg)
	if reflect.DeepEqual(cfg, have) {
		return false, nil
	}
	_, err = b.js.UpdateStream(ctx, cfg)
	return false, b.setupError(ctx, w, cfg, err)
}

// setupError says what a stream wants and what the server allows (field report B61).
func (b *Bus) setupError(ctx context.Context, w want, cfg jetstream.StreamConfig, err error) error {
	if err == nil {
		return nil
	}
	out := b.wrap(err, "set up %s", w.what)
	switch fault.KindOf(out) {
	case fault.Exhausted:
		text := fmt.Sprintf("%s wants %s of file store on %d server(s)", w.what, limitText(cfg.MaxBytes), cfg.Replicas)
		if account, infoErr := b.js.AccountInfo(ctx); infoErr == nil {
			text += fmt.Sprintf("; streams of this account have %s set aside of %s allowed to it",
				bytesize.Bytes(account.ReservedStore), limitText(account.Limits.MaxStore))
		}
		return fault.WithHint(fault.As(fault.Exhausted, fmt.Errorf("%s: %w", text, err)),
			"raise the server's max_file_store (limits of streams are set aside in full), or lower this stream's limit")
	case fault.Transient:
		return fault.WithHint(out, "is JetStream enabled on the server, and its store there?")
	}
	return out
}

func limitText(n int64) string {
	if n < 0 {
		return "no limit"
	}
	return bytesize.Bytes(n).String()
}

// guard looks after streams from now on.
func (b *Bus) guard(all []want) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range all {
		known := false
		for i := range b.wanted {
			if b.wanted[i].name == w.name {
				b.wanted[i], known = w, true
			}
		}
		if !known {
			b.wanted = append(b.wanted, w)
		}
	}
	if !b.guarding && b.ctx.Err() == nil {
		b.guarding = true
		b.tasks.Go(b.guardLoop)
	}
}

// wakeGuard makes the guard look now.
func (b *Bus) wakeGuard() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

func (b *Bus) guardLoop() {
	tick := time.NewTicker(b.cfg.GuardInterval)
	defer tick.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-tick.C:
		case <-b.kick:
		}
		if !b.Connected() {
			continue
		}
		b.mu.Lock()
		all := append([]want(nil), b.wanted...)
		b.mu.Unlock()
		for _, w := range all {
			ctx, cancel := context.WithTimeout(b.ctx, b.cfg.CallTimeout)
			made, err := b.ensure(ctx, w, false)
			cancel()
			if b.ctx.Err() != nil {
				return
			}
			if made {
				b.trouble(fault.New(fault.NotFound, "%s was gone: made again, empty", w.what))
			} else if err != nil {
				b.trouble(err)
				break
			}
		}
	}
}
