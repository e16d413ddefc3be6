package natsbus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

// Get opens an object.
func (o *objects) Get(ctx context.Context, name string, bytesMax int64) (io.ReadCloser, bus.ObjectInfo, error) {
	s, callCtx, cancel, err := o.b.stream(ctx, objectStream(o.bucket))
	if err != nil {
		return nil, bus.ObjectInfo{}, err
	}
	defer cancel()
	raw, info, err := o.find(callCtx, s, name)
	if err != nil {
		return nil, bus.ObjectInfo{}, err
	}
	if int64(info.Bytes) > bytesMax {
		return nil, bus.ObjectInfo{}, fault.New(fault.Invalid, "object %s/%s has %s; at most %d bytes are taken",
			o.bucket, name, info.Bytes, bytesMax)
	}
	return &reader{ctx: ctx, o: o, stream: s, raw: raw, info: info, hash: sha256.New()}, info, nil
}

// reader asks for one piece after the other, again when an answer is lost. So it needs no consumer, and an outage
// shorter than the call timeout does not end it.
type reader struct {
	ctx    context.Context
	o      *objects
	stream jetstream.Stream
	raw    *jetstream.ObjectInfo
	info   bus.ObjectInfo
	hash   hash.Hash

	at     uint64 // place of the last piece
	pieces uint32
	read   uint64
	piece  bytes.Reader
	err    error
}

// Read gives the bytes; io.EOF only if they are those that were put.
func (r *reader) Read(p []byte) (int, error) {
	for r.err == nil && r.piece.Len() == 0 {
		if r.pieces == r.raw.Chunks {
			r.err = r.check()
		} else {
			r.err = r.fetch()
		}
	}
	if r.err != nil {
		return 0, r.err
	}
	return r.piece.Read(p)
}

func (r *reader) fetch() error {
	ctx, cancel := context.WithTimeout(r.ctx, r.o.b.cfg.CallTimeout)
	defer cancel()
	for n := 0; ; n++ {
		err := r.o.b.waitUp(ctx)
		var msg *jetstream.RawStreamMsg
		if err == nil {
			err = r.o.b.attempt(ctx, tryMax, func(ctx context.Context) (err error) {
				msg, err = r.stream.GetMsg(ctx, r.at+1, jetstream.WithGetMsgSubject(r.o.chunkSubject(r.raw.NUID)))
				return err
			})
		}
		switch {
		case err == nil:
			r.at = msg.Sequence
			r.pieces++
			r.read += uint64(len(msg.Data))
			r.hash.Write(msg.Data)
			r.piece.Reset(msg.Data)
			return nil
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return r.lost(ctx)
		case kindOf(err) != fault.Transient || r.o.b.pause(ctx, n) != nil:
			return r.o.b.wrap(err, "read object %s/%s", r.o.bucket, r.info.Name)
		}
	}
}

// lost tells a piece that is missing because the object is another one by now from one that is truly lost.
func (r *reader) lost(ctx context.Context) error {
	now, _, err := r.o.find(ctx, r.stream, r.info.Name)
	if fault.KindOf(err) == fault.NotFound || err == nil && now.NUID != r.raw.NUID {
		return fault.New(fault.Transient, "object %s/%s was replaced or deleted while it was read", r.o.bucket, r.info.Name)
	}
	return fault.New(fault.Corrupt, "object %s/%s: piece %d of %d is missing",
		r.o.bucket, r.info.Name, r.pieces+1, r.raw.Chunks)
}

func (r *reader) check() error {
	if got := hex.EncodeToString(r.hash.Sum(nil)); got != r.info.SHA256 || r.read != r.raw.Size {
		return fault.New(fault.Corrupt, "object %s/%s: %d bytes of digest %s are not the %d of %s that were put",
			r.o.bucket, r.info.Name, r.read, got, r.raw.Size, r.info.SHA256)
	}
	return io.EOF
}

// Close ends reading.
func (r *reader) Close() error {
	if r.err == nil {
		r.err = fault.As(fault.Cancelled, fmt.Errorf("read object %s/%s: %w", r.o.bucket, r.info.Name, io.ErrClosedPipe))
	}
	return nil
}
