package natsbus

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
)

// uploads counts the pieces of each upload. It must be asked before the descriptions are read: an upload that was
// finished in between is then known to be wanted.
func (o *objects) uploads(ctx context.Context, s jetstream.Stream) (map[string]uint64, *jetstream.StreamInfo, error) {
	prefix := "$O." + o.bucket + ".C."
	info, err := o.b.leaderInfo(ctx, s, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return nil, nil, o.b.wrap(err, "count pieces of %s", o.bucket)
	}
	out := map[string]uint64{}
	for subject, count := range info.State.Subjects {
		out[strings.TrimPrefix(subject, prefix)] = count
	}
	return out, info, nil
}

// orphans gives uploads that no object owns, and all descriptions.
func (o *objects) orphans(
	ctx context.Context, s jetstream.Stream,
) (map[string]uint64, []stored, *jetstream.StreamInfo, error) {
	uploads, info, err := o.uploads(ctx, s)
	if err != nil {
		return nil, nil, nil, err
	}
	all, err := o.all(ctx, s)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, object := range all {
		if !object.raw.Deleted {
			delete(uploads, object.raw.NUID)
		}
	}
	return uploads, all, info, nil
}

// Usage counts the bucket. Partial is estimated from full pieces.
func (o *objects) Usage(ctx context.Context) (bus.ObjectUsage, error) {
	ctx, end := o.b.many(ctx)
	defer end()
	s, ctx, cancel, err := o.b.stream(ctx, objectStream(o.bucket))
	if err != nil {
		return bus.ObjectUsage{}, err
	}
	defer cancel()
	orphans, all, info, err := o.orphans(ctx, s)
	if err != nil {
		return bus.ObjectUsage{}, err
	}
	u := bus.ObjectUsage{Stored: bytesize.Bytes(info.State.Bytes)} //nolint:gosec // the server's own sum
	for _, object := range all {
		u.Live += object.info.Bytes
	}
	for upload, count := range orphans {
		bytes, _, err := o.pieces(ctx, s, upload, count)
		if err != nil {
			return bus.ObjectUsage{}, err
		}
		u.Partial += bytes
	}
	return u, nil
}

// pieces estimates an upload's bytes and tells when its last piece came.
func (o *objects) pieces(
	ctx context.Context, s jetstream.Stream, upload string, count uint64,
) (bytesize.Bytes, time.Time, error) {
	last, err := o.b.last(ctx, s, o.chunkSubject(upload))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, time.Now(), nil // gone meanwhile
	}
	if err != nil {
		return 0, time.Time{}, o.b.wrap(err, "look at upload %s of %s", upload, o.bucket)
	}
	bytes := int64(len(last.Data))
	if count > 1 {
		first, err := s.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(o.chunkSubject(upload)))
		if err == nil {
			bytes += int64(len(first.Data)) * int64(min(count-1, 1<<20)) //nolint:gosec // bounded
		}
	}
	return bytesize.Bytes(bytes), last.Time, nil
}

// Sweep removes pieces without an object, and marks of deleted objects, that are older than a time.
func (o *objects) Sweep(ctx context.Context, before time.Time) (freed bytesize.Bytes, err error) {
	ctx, end := o.b.many(ctx)
	defer end()
	s, ctx, cancel, err := o.b.stream(ctx, objectStream(o.bucket))
	if err != nil {
		return 0, err
	}
	defer cancel()
	orphans, all, _, err := o.orphans(ctx, s)
	if err != nil {
		return 0, err
	}
	for upload, count := range orphans {
		bytes, at, err := o.pieces(ctx, s, upload, count)
		if err != nil {
			return freed, err
		}
		if !at.Before(before) {
			continue
		}
		if err := o.b.purge(ctx, s, jetstream.WithPurgeSubject(o.chunkSubject(upload))); err != nil {
			return freed, o.b.wrap(err, "remove upload %s of %s", upload, o.bucket)
		}
		freed += bytes
	}
	for _, object := range all {
		if !object.raw.Deleted || !object.info.Modified.Before(before) {
			continue
		}
		// Up to the mark itself, so that an object put under the name since then stays.
		err := o.b.purge(ctx, s, jetstream.WithPurgeSubject(o.metaSubject(object.info.Name)),
			jetstream.WithPurgeSequence(object.sequence+1))
		if err != nil {
			return freed, o.b.wrap(err, "remove mark of deleted object %s/%s", o.bucket, object.info.Name)
		}
	}
	return freed, nil
}
