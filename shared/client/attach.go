package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// attach puts a small input into the request and uploads a large one; remove deletes the upload, which nobody needs
// once there is an answer.
func (c *Client) attach(
	ctx context.Context, body *wire.Submit, input io.Reader, setupWait time.Duration,
) (remove func(), err error) {
	head, err := io.ReadAll(io.LimitReader(input, wire.InlineBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	if len(head) == 0 {
		return nil, fault.New(fault.Invalid, "input is empty")
	}
	if len(head) <= wire.InlineBytesMax {
		body.Inline = head
		return func() {}, nil
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("name upload: %w", err)
	}
	objects, err := c.inputs(ctx, setupWait)
	if err != nil {
		return nil, fmt.Errorf("upload input: %w", err)
	}
	hash := sha256.New()
	limited := &bounded{r: io.MultiReader(bytes.NewReader(head), input), left: wire.ReferenceBytesMax}
	info, err := objects.Put(ctx, id.String(), io.TeeReader(limited, hash), nil)
	if err != nil {
		return nil, fmt.Errorf("upload input: %w", err)
	}
	body.Object = &job.Object{Name: info.Name, Bytes: int64(info.Bytes), SHA256: hex.EncodeToString(hash.Sum(nil))}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = objects.Delete(ctx, info.Name) // what stays is swept by the coordinator
	}, nil
}

// inputs opens the tenant's bucket for inputs. While it is not made yet, it waits.
func (c *Client) inputs(ctx context.Context, setupWait time.Duration) (bus.Objects, error) {
	var absent error // the last thing that was wrong, beside that the time was over
	served := false
	for begun := time.Now(); ; {
		objects, err := c.bus.Objects(ctx, wire.ObjectsIn(c.tenant))
		missing := fault.KindOf(err) == fault.NotFound
		switch {
		case err == nil:
			return objects, nil
		case errors.Is(ctx.Err(), context.Canceled):
			return nil, interrupted(ctx, "wait for the rack")
		case missing && served:
			err = fault.New(fault.NotFound, "the rack has no tenant %s: %w", c.tenant, err)
			return nil, fault.WithHint(err, "tenants are named in the settings of the coordinators (streams.tenants)")
		case missing:
			absent = notSetUp(fault.New(fault.Transient, "there is no bucket %s", wire.ObjectsIn(c.tenant)))
			// Coordinators answer when they have made the buckets: one that is missing then is not to come.
			if served = c.served(ctx); served {
				continue
			}
		case fault.KindOf(err) != fault.Transient:
			return nil, err
		case absent == nil || !errors.Is(err, context.DeadlineExceeded):
			absent = err
		}
		if pause(ctx, c.pause, setupWait, begun) == nil {
			continue
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, interrupted(ctx, "wait for the rack")
		}
		return nil, absent
	}
}

// served tells whether a coordinator answers for the tenant.
func (c *Client) served(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	data, err := wire.Encode(&wire.JobsRequest{Limit: 1})
	if err != nil {
		return false
	}
	_, err = c.bus.Request(ctx, bus.Message{Subject: wire.ClientSubject(wire.VerbJobs, c.tenant), Data: data})
	return err == nil
}

// bounded is a reader that refuses to give more than an input may have.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fault.New(fault.Invalid, "input is over the limit of %d bytes", int64(wire.ReferenceBytesMax))
	}
	return n, err
}
