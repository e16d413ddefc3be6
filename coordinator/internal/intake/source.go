package intake

import (
	"context"
	"errors"
	"hash"
	"io"

	"github.com/proofrack/proofrack/shared/fault"
)

// checkedReader hashes what it passes on, bounds it and ends with its context. It remembers the source's own error, so
// that a source that broke off is told from an input that is wrong.
type checkedReader struct {
	ctx  context.Context //nolint:containedctx // a reader has no other way to be ended
	r    io.Reader
	left int64
	hash hash.Hash
	err  error
}

func (c *checkedReader) Read(p []byte) (int, error) {
	if c.err == nil && c.ctx.Err() != nil {
		c.err = context.Cause(c.ctx)
	}
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left+1)])
	if int64(n) > c.left {
		c.err = fault.New(fault.Invalid, "input is larger than the request says, or than the limit")
		return 0, c.err
	}
	c.left -= int64(n)
	c.hash.Write(p[:n])
	if err != nil && !errors.Is(err, io.EOF) {
		if fault.KindOf(err) == fault.Internal {
			err = fault.As(fault.Transient, err)
		}
		c.err = err
	}
	return n, err
}
