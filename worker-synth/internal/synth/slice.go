package synth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"
	"unsafe"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Bounds of reading a slice.
const (
	sliceTryMax   = 30 * time.Second
	slicePauseMin = 100 * time.Millisecond
	slicePauseMax = 5 * time.Second
)

// witness fetches the slice and decodes it. The slice is kept as long as the witness, so that it is counted as long.
func (m *making) witness(ctx context.Context) (circuit.Witness, error) {
	began := time.Now()
	data, err := m.fetch(ctx, m.task.Slice)
	if err != nil {
		return nil, err
	}
	m.slice, m.input = data, m.config.Flight.Allocate(
		ledger.ClassInput, bytesize.Bytes(len(data)), flight.Anonymous, m.run.Attempt().String())
	flight.OnHeap(m.input, unsafe.SliceData(data))
	m.input.Seal()
	w, err := m.circuit.Decode(data)
	if err != nil {
		return nil, fault.As(fault.Invalid, fmt.Errorf("bad input: decode slice %s: %w", m.task.Slice.Name, err))
	}
	m.seconds["slice"] = time.Since(began).Seconds()
	return w, nil
}

// dropSlice lets go of the slice: the garbage collector says when it is gone.
func (m *making) dropSlice() {
	m.input.Release()
	m.slice = nil
}

// fetch reads a slice and compares its size and digest with the task's. While the bus is away it tries again, until the
// run is cancelled. Errors: kind NotFound (the input is gone), Corrupt, Invalid (a slice that is too large).
func (m *making) fetch(ctx context.Context, slice job.Object) ([]byte, error) {
	pause := slicePauseMin
	for {
		data, err := m.read(ctx, slice)
		if err == nil || fault.KindOf(err) != fault.Transient || ctx.Err() != nil {
			return data, err
		}
		m.run.Step() // waiting for the bus is no stall
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, slicePauseMax)
	}
}

func (m *making) read(ctx context.Context, slice job.Object) (_ []byte, err error) {
	if slice.Bytes < 0 || slice.Bytes > SliceBytesMax {
		return nil, fault.New(fault.Invalid, "slice %s of %d bytes is over the limit of %d",
			slice.Name, slice.Bytes, SliceBytesMax)
	}
	ctx, cancel := context.WithTimeout(ctx, sliceTryMax)
	defer cancel()
	r, _, err := m.slices.Get(ctx, slice.Name, SliceBytesMax)
	if err != nil {
		return nil, fmt.Errorf("read slice %s: %w", slice.Name, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	data, err := io.ReadAll(io.LimitReader(r, slice.Bytes+1))
	if err != nil {
		return nil, fmt.Errorf("read slice %s: %w", slice.Name, err)
	}
	if int64(len(data)) != slice.Bytes {
		return nil, fault.New(fault.Corrupt, "slice %s has %d bytes or more, its job says %d",
			slice.Name, len(data), slice.Bytes)
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != slice.SHA256 {
		return nil, fault.New(fault.Corrupt, "slice %s has digest %s, its job says %s", slice.Name, got, slice.SHA256)
	}
	return data, nil
}
