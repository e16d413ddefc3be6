package generate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/big"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/msm"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// Result describes generated parameters.
type Result struct {
	Counts srs.Counts
	Key    *srs.VerifyingKey
	Digest string // of the `.params` content, by the parameters.json rule
}

// Write generates the content of a `.params` file to w, in writes of some MB; its beginning is the `.vk` file, also
// given in Result.Key. Errors wrap ErrScalars, ErrUnconstrained, ErrCircuit, w's or the context's.
func Write(ctx context.Context, w io.Writer, c Circuit, s Scalars, o Options) (Result, error) {
	o = o.serialized()
	e, err := evaluate(ctx, c, s, o)
	if err != nil {
		return Result{}, fmt.Errorf("generate parameters of %s: %w", c.ID(), err)
	}
	defer e.free()
	r, err := e.write(ctx, w, o)
	if err != nil {
		return Result{}, fmt.Errorf("generate parameters of %s: %w", c.ID(), err)
	}
	return r, nil
}

// chunkPoints is how many points are multiplied, encoded and written at a time.
const chunkPoints = 1 << 15

// background writes one buffer while the next one is filled.
type background struct {
	w       io.Writer
	pending chan error // nil when nothing is being written
}

// write waits for the write before it and starts this one; b must not change until the next call returns.
func (b *background) write(p []byte) error {
	err := b.wait()
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	b.pending = done
	go func() {
		_, err := b.w.Write(p)
		done <- err
	}()
	return nil
}

// wait ends the write that is under way and gives its error.
func (b *background) wait() error {
	if b.pending == nil {
		return nil
	}
	err := <-b.pending
	b.pending = nil
	return err
}

// encoder multiplies scalars to one generator and writes the encoded points.
type encoder struct {
	w       *background
	size    int // bytes of a point
	encode  func(ctx context.Context, out []byte, scalars []fr.Element) error
	buffers [2][]byte // used in turn
	options Options
}

func newEncoder(
	w io.Writer, size int, encode func(context.Context, []byte, []fr.Element) error, o Options,
) *encoder {
	e := &encoder{w: &background{w: w}, size: size, encode: encode, options: o}
	for i := range e.buffers {
		e.buffers[i] = make([]byte, chunkPoints*size)
	}
	return e
}

// list writes a count and the multiples of the scalars that arrive in pieces.
func (e *encoder) list(ctx context.Context, stage Stage, count int, pieces iter.Seq[[]fr.Element]) error {
	err := e.w.write(binary.BigEndian.AppendUint32(nil, uint32(count)))
	done := 0
	for piece := range pieces {
		for len(piece) > 0 && err == nil {
			n := min(len(piece), chunkPoints)
			err = e.chunk(ctx, piece[:n])
			piece = piece[n:]
			done += n
			e.options.progress(stage, int64(done), int64(count))
		}
		if err != nil {
			break
		}
	}
	if err == nil && done != count {
		err = fmt.Errorf("%d points for a count of %d: %w", done, count, ErrCircuit)
	}
	if err = errors.Join(err, e.w.wait()); err != nil {
		return fmt.Errorf("write %s: %w", stage, err)
	}
	return nil
}

// chunk encodes at most chunkPoints points and hands them over to be written.
func (e *encoder) chunk(ctx context.Context, scalars []fr.Element) error {
	e.buffers[0], e.buffers[1] = e.buffers[1], e.buffers[0]
	out := e.buffers[0][:len(scalars)*e.size]
	if err := e.encode(ctx, out, scalars); err != nil {
		return err
	}
	return e.w.write(out)
}

// write writes the whole file and frees vectors as they are used up.
func (e *evaluation) write(ctx context.Context, w io.Writer, o Options) (Result, error) {
	digest := srs.NewDigest()
	w = io.MultiWriter(w, digest)
	_, _, g1, g2 := bls12381.Generators()
	c := e.counts
	table, err := msm.NewFixedBaseG1(ctx, g1, msm.Config{Workers: o.Workers, ScalarCount: c.IC + c.H + c.L + c.A + c.B})
	if err != nil {
		return Result{}, err
	}
	key, err := e.key(ctx, table)
	if err != nil {
		return Result{}, err
	}
	if _, err := key.WriteTo(w); err != nil {
		return Result{}, err
	}
	if err := e.writeG1(ctx, newEncoder(w, srs.G1Bytes, table.Encode, o)); err != nil {
		return Result{}, err
	}
	table2, err := msm.NewFixedBaseG2(ctx, g2, msm.Config{Workers: o.Workers, ScalarCount: c.B})
	if err != nil {
		return Result{}, err
	}
	last := newEncoder(w, srs.G2Bytes, table2.Encode, o)
	b := e.pieces(e.heads[1], func(p *part) *vector { return p.v }, true)
	if err := last.list(ctx, StageB2, c.B, b); err != nil {
		return Result{}, err
	}
	return Result{Counts: c, Key: key, Digest: digest.Hex()}, nil
}

// writeG1 writes the four lists in G1.
func (e *evaluation) writeG1(ctx context.Context, to *encoder) error {
	if err := to.list(ctx, StageH, e.counts.H, e.powers()); err != nil {
		return err
	}
	l := e.pieces(e.headL, func(p *part) *vector { return p.l }, true)
	if err := to.list(ctx, StageL, e.counts.L, l); err != nil {
		return err
	}
	a := e.pieces(e.heads[0], func(p *part) *vector { return p.u }, true)
	if err := to.list(ctx, StageA, e.counts.A, a); err != nil {
		return err
	}
	return to.list(ctx, StageB1, e.counts.B, e.pieces(e.heads[1], func(p *part) *vector { return p.v }, false))
}

// pieces are a head and one vector of every section; with last set a vector is freed when the next one is asked for.
func (e *evaluation) pieces(head []fr.Element, of func(*part) *vector, last bool) iter.Seq[[]fr.Element] {
	return func(yield func([]fr.Element) bool) {
		if !yield(head) {
			return
		}
		for i := range e.parts {
			v := of(&e.parts[i])
			goOn := yield(v.elements)
			if last {
				v.free()
			}
			if !goOn {
				return
			}
		}
	}
}

// powers are the exponents of h: tau^i (tau^m - 1)/delta for i = 0…m-2.
func (e *evaluation) powers() iter.Seq[[]fr.Element] {
	return func(yield func([]fr.Element) bool) {
		var x fr.Element
		x.Inverse(&e.scalars.Delta).Mul(&x, &e.domain.target)
		chunk := make([]fr.Element, chunkPoints)
		for left := e.counts.H; left > 0; {
			n := min(left, chunkPoints)
			for i := range n {
				chunk[i] = x
				x.Mul(&x, &e.scalars.Tau)
			}
			if !yield(chunk[:n]) {
				return
			}
			left -= n
		}
	}
}

// key makes the verifying key.
func (e *evaluation) key(ctx context.Context, table *msm.FixedBaseG1) (*srs.VerifyingKey, error) {
	ic, err := table.Multiply(ctx, e.ic)
	if err != nil {
		return nil, fmt.Errorf("multiply ic: %w", err)
	}
	k := &srs.VerifyingKey{IC: ic}
	s := &e.scalars
	var n big.Int
	k.AlphaG1.ScalarMultiplicationBase(s.Alpha.BigInt(&n))
	k.BetaG1.ScalarMultiplicationBase(s.Beta.BigInt(&n))
	k.BetaG2.ScalarMultiplicationBase(s.Beta.BigInt(&n))
	k.GammaG2.ScalarMultiplicationBase(s.Gamma.BigInt(&n))
	k.DeltaG1.ScalarMultiplicationBase(s.Delta.BigInt(&n))
	k.DeltaG2.ScalarMultiplicationBase(s.Delta.BigInt(&n))
	return k, nil
}
