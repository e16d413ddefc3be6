package natsbus

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// headerRoom is what a piece's message id and the protocol take of the server's max_payload.
const headerRoom = 512

// Put stores what a reader gives. The context bounds all of it; without a deadline each piece has the call timeout.
func (o *objects) Put(
	ctx context.Context, name string, r io.Reader, meta map[string]string,
) (bus.ObjectInfo, error) {
	if err := bus.CheckObjectName(name); err != nil {
		return bus.ObjectInfo{}, err
	}
	u := &upload{o: o, raw: &jetstream.ObjectInfo{
		Bucket: o.bucket, NUID: nuid.Next(), ObjectMeta: jetstream.ObjectMeta{Name: name, Metadata: meta},
	}, hash: sha256.New()}
	u.raw.Opts = &jetstream.ObjectMetaOptions{ChunkSize: uint32(o.chunkBytes())}
	if err := u.send(ctx, r); err != nil {
		u.undo()
		return bus.ObjectInfo{}, fmt.Errorf("put object %s/%s: %w", o.bucket, name, err)
	}
	info, err := u.finish(ctx)
	if err != nil {
		return bus.ObjectInfo{}, fmt.Errorf("put object %s/%s: %w", o.bucket, name, err)
	}
	return info, nil
}

func (o *objects) chunkBytes() int64 {
	return max(1, min(int64(o.b.cfg.ChunkBytes), o.b.conn.MaxPayload()-headerRoom))
}

// upload is one Put.
type upload struct {
	o    *objects
	raw  *jetstream.ObjectInfo
	hash hash.Hash
}

// send stores the pieces one after the other.
func (u *upload) send(ctx context.Context, r io.Reader) error {
	chunk := make([]byte, u.raw.Opts.ChunkSize)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, readErr := io.ReadFull(r, chunk)
		if readErr != nil && !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF) {
			return fmt.Errorf("read what is to be stored: %w", readErr)
		}
		if n > 0 {
			u.hash.Write(chunk[:n])
			_, _, err := u.o.b.publish(ctx, &nats.Msg{
				Subject: u.o.chunkSubject(u.raw.NUID), Data: chunk[:n],
				Header: nats.Header{jetstream.MsgIDHeader: {fmt.Sprintf("%s.%d", u.raw.NUID, u.raw.Chunks)}},
			}, true, electionMax)
			if err != nil {
				return err
			}
			u.raw.Chunks++
			u.raw.Size += uint64(n) //nolint:gosec // not negative
		}
		if readErr != nil {
			return nil
		}
	}
}

// finish makes the object visible and removes the pieces of the one it replaces.
func (u *upload) finish(ctx context.Context) (bus.ObjectInfo, error) {
	s, ctx, cancel, err := u.o.b.stream(ctx, objectStream(u.o.bucket))
	if err != nil {
		u.undo()
		return bus.ObjectInfo{}, err
	}
	defer cancel()
	if err := u.complete(ctx, s); err != nil {
		u.undo()
		return bus.ObjectInfo{}, err
	}
	before, _, err := u.o.find(ctx, s, u.raw.Name)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		u.undo()
		return bus.ObjectInfo{}, err
	}
	sum := u.hash.Sum(nil)
	u.raw.Digest = digestPrefix + base64.URLEncoding.EncodeToString(sum)
	if err := u.o.publishMeta(ctx, u.raw, u.raw.NUID+".done"); err != nil {
		if kind := fault.KindOf(err); kind == fault.Exhausted || kind == fault.Invalid {
			u.undo() // else it may have been stored, and the pieces be wanted
		}
		return bus.ObjectInfo{}, err
	}
	info := bus.ObjectInfo{
		Name: u.raw.Name, Bytes: bytesize.Bytes(u.raw.Size), //nolint:gosec // counted here
		SHA256: hex.EncodeToString(sum), Modified: time.Now().UTC(), Meta: u.raw.Metadata,
	}
	if _, stored, err := u.o.find(ctx, s, u.raw.Name); err == nil && stored.SHA256 == info.SHA256 {
		info.Modified = stored.Modified // by the server's clock
	}
	if before != nil && before.NUID != u.raw.NUID {
		// What this leaves behind Sweep finds.
		_ = u.o.b.purge(ctx, s, jetstream.WithPurgeSubject(u.o.chunkSubject(before.NUID)))
	}
	return info, nil
}

// countsMax is how often pieces are counted again, in about a second: a leader that stood still answers for as long,
// until it learns that it is leader no more.
const countsMax = 5

// complete demands that no piece was swept away while the upload stood still.
func (u *upload) complete(ctx context.Context, s jetstream.Stream) error {
	if u.raw.Chunks == 0 {
		return nil
	}
	subject := u.o.chunkSubject(u.raw.NUID)
	for n := 0; ; n++ {
		info, err := u.o.b.leaderInfo(ctx, s, jetstream.WithSubjectFilter(subject))
		if err != nil {
			return u.o.b.wrap(err, "count pieces")
		}
		have := info.State.Subjects[subject]
		if have == uint64(u.raw.Chunks) {
			return nil
		}
		if n == countsMax || u.o.b.pause(ctx, n) != nil {
			return fault.New(fault.Transient, "%d of %d pieces are left: the upload took too long", have, u.raw.Chunks)
		}
	}
}

// undo removes the pieces, if the server can be asked.
func (u *upload) undo() {
	if u.raw.Chunks == 0 || !u.o.b.Connected() {
		return
	}
	s, ctx, cancel, err := u.o.b.stream(u.o.b.ctx, objectStream(u.o.bucket))
	if err != nil {
		return
	}
	defer cancel()
	_ = s.Purge(ctx, jetstream.WithPurgeSubject(u.o.chunkSubject(u.raw.NUID))) // else Sweep does
}
