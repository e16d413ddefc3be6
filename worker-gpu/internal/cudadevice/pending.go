package cudadevice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/proofrack/proofrack/cuda"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/prover"
)

// pending is a proof that was started. See prover.Pending.
//
//	on the device ─bringHome─► sums known ─Finish─► over
//	      └─ given back after an error, or by Close: over
type pending struct {
	device   *Device
	source   prover.Source
	circuit  *loaded
	finished atomic.Bool

	turn  chan struct{} // holds a token while nobody works on it; the rest is of who has the token
	proof *cuda.Pending // nil when it is not on the device any more
	sums  *groth16.Sums // once they are known
	lost  error         // why they never will be

	watch prover.Stopwatch
}

func newPending(d *Device, s prover.Source) *pending {
	w := &pending{device: d, source: s, circuit: d.loaded, turn: make(chan struct{}, 1)}
	w.turn <- struct{}{}
	return w
}

// begin finds a place on the device, bringing older proofs home where there is none.
func (w *pending) begin(ctx context.Context) (err error) {
	for {
		w.proof, err = w.circuit.params.Begin()
		if !errors.Is(err, cuda.ErrBusy) {
			return kind(err)
		}
		oldest := w.device.oldest()
		if oldest == nil {
			return fault.As(fault.Internal, err)
		}
		if err := oldest.bringHome(ctx); err != nil {
			return err
		}
	}
}

// run lets the device work until it is done or ctx ends.
func (w *pending) run(ctx context.Context, work func() error) error {
	aborted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(aborted)
		w.proof.Abort()
	})
	err := work()
	if !stop() {
		<-aborted // it uses the proof
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, cuda.ErrAborted) {
		return ctx.Err()
	}
	return kind(err)
}

// give gives its place on the device back, and the error with what came of that.
func (w *pending) give(err error) error {
	d := w.device
	d.mu.Lock()
	d.live = slices.DeleteFunc(d.live, func(v *pending) bool { return v == w })
	d.mu.Unlock()
	if w.proof == nil {
		return err
	}
	closed := w.proof.Close()
	w.proof = nil
	return errors.Join(err, kind(closed))
}

// bringHome has the sums computed if they are not, for who wants the place on the device. A proof that fails there is
// its own Finish's matter.
func (w *pending) bringHome(ctx context.Context) error {
	select {
	case <-w.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { w.turn <- struct{}{} }()
	if w.lost = w.collect(ctx); w.lost != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

// collect has the device compute the last sum and takes all, unless that was done; it must run with the turn. After an
// error the proof is lost.
func (w *pending) collect(ctx context.Context) error {
	if w.proof == nil {
		return nil
	}
	var sums cuda.Sums
	err := w.run(ctx, func() (err error) {
		sums, err = w.proof.Finish()
		return err
	})
	if err == nil {
		w.sums = &groth16.Sums{A: sums.A, B1: sums.B1, C: sums.C, B2: sums.B2}
		err = w.note()
	}
	return w.give(err)
}

// note takes the device's times and holds the memory that it used against the plan.
func (w *pending) note() error {
	t, err := w.proof.Timings()
	if err != nil {
		return kind(err)
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	w.watch.Set(func(times *prover.Timings) {
		times.Quotient = seconds(t.Upload + t.Quotient)
		times.H, times.L, times.A = seconds(t.H), seconds(t.L), seconds(t.A)
		times.B1, times.B2 = seconds(t.B1), seconds(t.B2)
	})
	if most := w.circuit.plan.PeakBytes; t.PeakBytes > most {
		return fault.New(fault.Internal, "device took %d bytes, %d were planned", t.PeakBytes, most)
	}
	return nil
}

// Finish adds the sum in G2, assembles and verifies; see prover.Pending.
func (w *pending) Finish(ctx context.Context) (*groth16.Proof, error) {
	proof, err := w.finish(ctx)
	if err != nil {
		s := w.source.Segment
		return nil, fmt.Errorf("finish proof of partition %d of circuit %s: %w", s.Partition(), s.CircuitID(), err)
	}
	return proof, nil
}

func (w *pending) finish(ctx context.Context) (*groth16.Proof, error) {
	if w.finished.Swap(true) {
		return nil, prover.ErrFinished
	}
	<-w.turn // whoever has it is bringing it home, or closing the device
	defer func() { w.turn <- struct{}{} }()
	if w.device.closed.Load() {
		return nil, prover.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, w.give(err)
	}
	observe := w.device.config.Observe
	end := observe(groth16.StageB2)
	err := w.collect(ctx)
	end()
	if err != nil {
		return nil, w.give(err)
	}
	if w.lost != nil {
		return nil, w.lost
	}
	options := append([]groth16.Option{groth16.WithObserver(observe)}, w.device.config.Options...)
	done := w.watch.Timed(func(t *prover.Timings) *time.Duration { return &t.Assemble })
	proof, err := groth16.Assemble(w.circuit.of.SRS.Key, w.sums, options...)
	done()
	if err != nil {
		return nil, err
	}
	defer w.watch.Timed(func(t *prover.Timings) *time.Duration { return &t.Verify })()
	return prover.Verified(proof, w.circuit.key, w.source)
}

// Timings are the times so far; see prover.Pending.
func (w *pending) Timings() prover.Timings { return w.watch.Read() }
