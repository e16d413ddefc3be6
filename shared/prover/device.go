package prover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/shared/proof/artifact"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// What every device refuses or fails for, beside its own errors and the context's.
var (
	// ErrMismatch: source, parameters and artifact are not all of one circuit.
	ErrMismatch = errors.New("not of the same circuit")
	// ErrFinished: Finish was called before, whatever came of it.
	ErrFinished = errors.New("pending proof was finished before")
	// ErrClosed: the device was closed.
	ErrClosed = errors.New("device is closed")
	// ErrProof: the proof that was made does not verify, so that source, parameters or device are at fault. It comes
	// together with what package groth16 says about the proof.
	ErrProof = errors.New("device made a proof that does not verify")
)

// Source is a partition to prove.
type Source struct {
	// Segment is sealed and its checksums were compared. It stays as it is until Finish has returned.
	Segment *compact.Segment
}

// Params are what proofs of one circuit are made with. Both stay open until the device is closed or has started a proof
// with others and finished all with these.
type Params struct {
	SRS      *srs.Params
	Artifact *artifact.Artifact
}

// Check refuses what does not belong together: the error is ErrMismatch.
func (p Params) Check(s Source) error {
	a := p.Artifact
	if id := s.Segment.CircuitID(); id != a.CircuitID || s.Segment.Counts() != a.Totals {
		return fmt.Errorf("%w: segment of circuit %s, artifact of circuit %s", ErrMismatch, id, a.CircuitID)
	}
	if want := srs.CountsOf(a.Totals, a.Density); p.SRS.Counts != want {
		return fmt.Errorf("%w: circuit %s needs %s; %s has %s",
			ErrMismatch, a.CircuitID, want, p.SRS.Path, p.SRS.Counts)
	}
	return nil
}

// Device proves partitions. All methods may be called from several goroutines.
type Device interface {
	// Name is a stable short name, e.g. "cpu".
	Name() string
	// Memory is what proofs of a circuit with these totals take, mapped parameters and the source left out.
	Memory(totals r1cs.Position) MemoryProfile
	// Start begins one proof and returns when a and b of the source are not needed any more. Errors: ErrMismatch,
	// ErrClosed, the context's, the device's own.
	Start(ctx context.Context, s Source, p Params) (Pending, error)
	// Close gives everything back. Proofs that are pending fail with ErrClosed; those being finished are waited for.
	// Closing again does nothing.
	Close() error
}

// Pending is a proof that has been started.
type Pending interface {
	// Finish gives the proof, which verifies. It may be called once. A context that ends makes it return with the
	// context's error; the pending proof is lost then. Errors: ErrFinished, ErrClosed, ErrProof, the context's, the
	// device's own.
	Finish(ctx context.Context) (*groth16.Proof, error)
	// Timings are the times so far, complete after Finish.
	Timings() Timings
}

// MemoryProfile is what a device needs for one circuit, bytes. Nothing is counted twice.
type MemoryProfile struct {
	// SharedBytes are kept between proofs and serve all that are pending.
	SharedBytes int64
	// PendingBytes are kept for each proof between Start and Finish.
	PendingBytes int64
	// WorkingBytes come and go within Start or Finish.
	WorkingBytes int64
	// DeviceBytes lie in an accelerator's own memory; all others are the host's.
	DeviceBytes int64
}

// HostPeakBytes is the most host memory with so many proofs pending.
func (m MemoryProfile) HostPeakBytes(pending int) int64 {
	return m.SharedBytes + m.WorkingBytes + int64(pending)*m.PendingBytes
}

// Timings are how long the parts of a proof took; waiting for a busy device is in none of them.
type Timings struct {
	Quotient        time.Duration // transforms
	H, L, A, B1, B2 time.Duration // sums over the lists of the parameter file
	Assemble        time.Duration
	Verify          time.Duration
}

// Total is the sum of all parts.
func (t Timings) Total() time.Duration {
	return t.Quotient + t.H + t.L + t.A + t.B1 + t.B2 + t.Assemble + t.Verify
}
