package natsbus

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// objects is a bucket in the form of NATS's object stores, which every NATS client reads: pieces on
// $O.<bucket>.C.<upload>, one description per name on $O.<bucket>.M.<name>. The library's own writer is not used: it
// sends everything ahead of the answers, cannot send a piece again, and leaves pieces when its context ends.
type objects struct {
	b      *Bus
	bucket string
}

const digestPrefix = "SHA-256="

// Objects opens a bucket of objects.
func (b *Bus) Objects(ctx context.Context, bucket string) (bus.Objects, error) {
	if err := bus.CheckName("object bucket", bucket); err != nil {
		return nil, err
	}
	_, _, cancel, err := b.stream(ctx, objectStream(bucket))
	if err != nil {
		return nil, err
	}
	cancel()
	return &objects{b: b, bucket: bucket}, nil
}

func (o *objects) metaSubject(name string) string {
	return "$O." + o.bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

func (o *objects) chunkSubject(upload string) string { return "$O." + o.bucket + ".C." + upload }

// described reads a description. It is bounded by the server's message size.
func (o *objects) described(data []byte, at time.Time) (*jetstream.ObjectInfo, bus.ObjectInfo, error) {
	var raw jetstream.ObjectInfo
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, bus.ObjectInfo{}, fault.As(fault.Corrupt, fmt.Errorf("decode description of an object: %w", err))
	}
	out := bus.ObjectInfo{Name: raw.Name, Modified: at, Meta: raw.Metadata}
	if raw.Deleted {
		return &raw, out, nil
	}
	sum, err := base64.URLEncoding.DecodeString(strings.TrimPrefix(raw.Digest, digestPrefix))
	bytes, sizeErr := bytesize.Of(int64(min(raw.Size, 1<<62)))
	if err != nil || sizeErr != nil || raw.Opts != nil && raw.Opts.Link != nil || bus.CheckObjectName(raw.Name) != nil ||
		strings.ContainsAny(raw.NUID, ".*> ") || raw.NUID == "" {
		return nil, bus.ObjectInfo{}, fault.New(fault.Corrupt, "description of object %.200q is malformed", raw.Name)
	}
	out.SHA256, out.Bytes = hex.EncodeToString(sum), bytes
	return &raw, out, nil
}

// find reads a name's description; fault.NotFound when there is none or it was deleted.
func (o *objects) find(
	ctx context.Context, s jetstream.Stream, name string,
) (raw *jetstream.ObjectInfo, info bus.ObjectInfo, err error) {
	if err := bus.CheckObjectName(name); err != nil {
		return nil, bus.ObjectInfo{}, err
	}
	msg, err := o.b.last(ctx, s, o.metaSubject(name))
	if err == nil {
		raw, info, err = o.described(msg.Data, msg.Time)
	}
	if err == nil && raw.Deleted {
		err = jetstream.ErrObjectNotFound
	}
	if err != nil {
		return nil, bus.ObjectInfo{}, o.b.wrap(err, "find object %s/%s", o.bucket, name)
	}
	return raw, info, nil
}

func (o *objects) Info(ctx context.Context, name string) (bus.ObjectInfo, error) {
	s, ctx, cancel, err := o.b.stream(ctx, objectStream(o.bucket))
	if err != nil {
		return bus.ObjectInfo{}, err
	}
	defer cancel()
	_, info, err := o.find(ctx, s, name)
	return info, err
}

// publishMeta replaces a name's description.
func (o *objects) publishMeta(ctx context.Context, raw *jetstream.ObjectInfo, id string) error {
	data, err := json.Marshal(raw)
	if err != nil {
		return fmt.Errorf("encode description of object %s: %w", raw.Name, err)
	}
	_, _, err = o.b.publish(ctx, &nats.Msg{Subject: o.metaSubject(raw.Name), Data: data, Header: nats.Header{
		jetstream.MsgRollup: {jetstream.MsgRollupSubject}, jetstream.MsgIDHeader: {id},
	}}, true, electionMax)
	return err
}

func (o *objects) Delete(ctx context.Context, name string) error {
	s, ctx, cancel, err := o.b.stream(ctx, objectStream(o.bucket))
	if err != nil {
		return err
	}
	defer cancel()
	raw, _, err := o.find(ctx, s, name)
	if err != nil {
		return err
	}
	raw.Deleted, raw.Size, raw.Chunks, raw.Digest, raw.ModTime = true, 0, 0, "", time.Time{}
	if err := o.publishMeta(ctx, raw, raw.NUID+".deleted"); err != nil {
		return fmt.Errorf("delete object %s/%s: %w", o.bucket, name, err)
	}
	return o.b.wrap(o.b.purge(ctx, s, jetstream.WithPurgeSubject(o.chunkSubject(raw.NUID))),
		"delete pieces of object %s/%s", o.bucket, name)
}

// stored is a description with its place.
type stored struct {
	raw      *jetstream.ObjectInfo
	info     bus.ObjectInfo
	sequence uint64
}

// all reads the descriptions, those of deleted objects too, sorted by name. Each is asked for by itself: who
// removes what no object owns must not believe a server that is behind.
func (o *objects) all(ctx context.Context, s jetstream.Stream) (out []stored, err error) {
	info, err := o.b.leaderInfo(ctx, s, jetstream.WithSubjectFilter("$O."+o.bucket+".M.>"))
	if err != nil {
		return nil, o.b.wrap(err, "list objects of %s", o.bucket)
	}
	var errs []error
	err = o.b.eachLast(ctx, s, slices.Collect(maps.Keys(info.State.Subjects)), func(m *jetstream.RawStreamMsg) {
		raw, info, err := o.described(m.Data, m.Time)
		if err != nil {
			errs = append(errs, err)
			return
		}
		out = append(out, stored{raw, info, m.Sequence})
	})
	if err == nil {
		err = errors.Join(errs...)
	}
	if err != nil {
		return nil, o.b.wrap(err, "list objects of %s", o.bucket)
	}
	slices.SortFunc(out, func(a, b stored) int { return strings.Compare(a.info.Name, b.info.Name) })
	return out, nil
}

func (o *objects) List(ctx context.Context) ([]bus.ObjectInfo, error) {
	ctx, end := o.b.many(ctx)
	defer end()
	s, ctx, cancel, err := o.b.stream(ctx, objectStream(o.bucket))
	if err != nil {
		return nil, err
	}
	defer cancel()
	all, err := o.all(ctx, s)
	if err != nil {
		return nil, err
	}
	out := []bus.ObjectInfo{}
	for _, s := range all {
		if !s.raw.Deleted {
			out = append(out, s.info)
		}
	}
	return out, nil
}
