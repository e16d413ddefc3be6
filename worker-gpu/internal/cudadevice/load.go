package cudadevice

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/proofrack/proofrack/cuda"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/prover"
	"github.com/proofrack/proofrack/worker-gpu/internal/residency"
)

// loaded is the circuit whose parameters are on the device.
type loaded struct {
	of      prover.Params // as they were given
	decoded *srs.Params   // the same, or the image that was made of them
	key     *groth16.PreparedKey
	params  *cuda.Params
	plan    cuda.Plan
}

// use loads a circuit's parameters, unless they are those that are loaded. It runs with the turn to start.
func (d *Device) use(ctx context.Context, p prover.Params) error {
	if d.loaded != nil && d.loaded.of == p {
		return nil
	}
	for w := d.oldest(); w != nil; w = d.oldest() {
		if err := w.bringHome(ctx); err != nil {
			return err
		}
	}
	if err := d.drop(); err != nil {
		return err
	}
	l, err := d.load(ctx, p)
	if err != nil {
		return fmt.Errorf("load circuit %s: %w", p.Artifact.CircuitID, err)
	}
	d.loaded = l
	return nil
}

func (d *Device) load(ctx context.Context, p prover.Params) (_ *loaded, err error) {
	l := &loaded{of: p, decoded: p.SRS}
	if l.key, err = groth16.Prepare(p.SRS.Key); err != nil {
		return nil, err
	}
	shape := shapeOf(p.Artifact.Totals, p.SRS.Counts.A, p.SRS.Counts.B)
	if l.plan, err = d.library.Plan(shape, d.limit(), d.config.Pending); err != nil {
		return nil, kind(err)
	}
	if err := d.takeArena(l.plan.PeakBytes, l.plan.PinnedBytes); err != nil {
		return nil, err
	}
	if !p.SRS.Decoded() {
		if l.decoded, err = d.decode(ctx, p.Artifact.CircuitID, p.SRS); err != nil {
			return nil, err
		}
	}
	s, density := l.decoded, p.Artifact.Density
	l.params, err = d.device.Load(shape, cuda.Points{
		H: s.H.G1(0, s.H.Len()), L: s.L.G1(0, s.L.Len()), A: s.A.G1(0, s.A.Len()), B1: s.B1.G1(0, s.B1.Len()),
		B2: s.B2.G2(0, s.B2.Len()), AAux: density.AAux, BAux: density.BAux, BInputs: density.BInputs,
	}, l.plan.Pending)
	if err != nil {
		return nil, errors.Join(kind(err), l.closeImage())
	}
	return l, nil
}

// ownImageBytesMax bounds images that are made here, which nobody booked.
const ownImageBytesMax = 4 << 30

// decode makes an image of parameters that were not given as one.
func (d *Device) decode(ctx context.Context, id string, p *srs.Params) (_ *srs.Params, err error) {
	size := p.Counts.ImageBytes()
	if size > ownImageBytesMax {
		return nil, fault.New(fault.Internal, "parameters of %s are not decoded", bytesize.Bytes(size))
	}
	workers := d.config.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	fill := func(file *os.File) error { return p.WriteImage(ctx, file, workers, nil) }
	file, release, err := residency.NewImages(nil).Hold(ctx, id, p.Digest, size, fill)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }() // it stays while it is mapped
	return srs.OpenImage(file, p.Counts)
}

func (l *loaded) closeImage() error {
	if l.decoded == nil || l.decoded == l.of.SRS {
		return nil
	}
	return l.decoded.Close()
}

// drop takes the loaded circuit off the device. None of its proofs may be there.
func (d *Device) drop() error {
	l := d.loaded
	if l == nil {
		return nil
	}
	d.loaded = nil
	return errors.Join(kind(l.params.Close()), l.closeImage())
}

// takeArena sees to it that at least so many bytes of the device's memory are taken, and of the host's pinned; 0 gives
// all back. No circuit may be loaded.
func (d *Device) takeArena(bytes, pinned uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.device != nil && bytes > 0 && d.arena >= bytes && d.pinned >= pinned {
		return nil
	}
	if d.device != nil {
		if err := d.device.Close(); err != nil {
			return kind(err)
		}
		d.device, d.arena, d.pinned = nil, 0, 0
	}
	if bytes == 0 {
		return nil
	}
	device, err := d.library.Open(d.info.UUID, cuda.Options{
		ArenaBytes: bytes, PinnedBytes: pinned, Threads: d.config.Workers,
	})
	if err != nil {
		return kind(err)
	}
	d.device, d.arena, d.pinned = device, bytes, pinned
	return nil
}

// layoutOf says where the parts of a segment are.
func layoutOf(s *compact.Segment) cuda.Layout {
	o := s.Offsets()
	return cuda.Layout{
		Inputs: o.Inputs, A0: o.A0, A1: o.A1, B0: o.B0, AFull: o.AFull, BFull: o.BFull, X0: o.X0, XFull: o.XFull,
		RankA: o.RankA, RankB: o.RankB, RankX: o.RankX, ListA: o.ListA, ListB: o.ListB, ListX: o.ListX,
	}
}

// kind says what the library's errors mean for who gave the work.
func kind(err error) error {
	var e *cuda.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e) && e.Code == cuda.CodeQuotient:
		return fault.As(fault.Device, fmt.Errorf("%w: %w", groth16.ErrQuotient, err))
	case errors.As(err, &e) && slices.Contains([]cuda.Code{cuda.CodeArgument, cuda.CodeInternal}, e.Code):
		return fault.As(fault.Internal, err)
	}
	return fault.As(fault.Device, err)
}
