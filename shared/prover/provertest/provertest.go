package provertest

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/groth16/groth16test"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/prover"
)

// Open makes a device that passes the options on to package groth16.
type Open func(t testing.TB, options ...groth16.Option) prover.Device

// Run runs the suite against the devices that open makes.
func Run(t *testing.T, open Open) {
	t.Helper()
	s := suite{open: open}
	for name, test := range map[string]func(*testing.T){
		"KnownAnswer":                         s.knownAnswer,
		"RandomCircuitsVerify":                s.randomCircuits,
		"EqualBlindingGivesEqualProofs":       s.equalBlinding,
		"OtherCircuitsParametersAreRefused":   s.otherParameters,
		"OtherCircuitsSegmentsAreRefused":     s.otherSegment,
		"ProofsUnderWrongPointsDoNotLeave":    s.wrongPoints,
		"UnsatisfiedSegmentsGiveNoProof":      s.unsatisfied,
		"CancelledStartGivesNothing":          s.cancelledStart,
		"CancelledFinishGivesNothing":         s.cancelledFinish,
		"TwoPendingAtOnce":                    s.twoPending,
		"CircuitsTakeTurns":                   s.circuitsTakeTurns,
		"FinishTwiceIsAnError":                s.finishTwice,
		"CloseWithPending":                    s.closeWithPending,
		"ClosedDevicesStartNothing":           s.closed,
		"NamesAndMemoryProfilesAreMeaningful": s.describes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

type suite struct{ open Open }

// bench is a device with one circuit's parameters.
type bench struct {
	testing.TB

	device  prover.Device
	circuit circuit.Circuit
	params  prover.Params
}

func (s suite) bench(t testing.TB, c circuit.Circuit, options ...groth16.Option) *bench {
	t.Helper()
	b := &bench{TB: t, circuit: c}
	b.params.SRS, b.params.Artifact = groth16test.Params(t, c)
	device := s.open(t, options...)
	b.device = device
	t.Cleanup(func() {
		if err := device.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

func (b *bench) segment(seed uint64) *compact.Segment {
	b.Helper()
	return groth16test.Segment(b, b.circuit, groth16test.Slice(seed))
}

func (b *bench) start(s *compact.Segment) prover.Pending {
	b.Helper()
	pending, err := b.device.Start(context.Background(), prover.Source{Segment: s}, b.params)
	if err != nil {
		b.Fatal(err)
	}
	return pending
}

// finish demands a proof that verifies.
func (b *bench) finish(pending prover.Pending, s *compact.Segment) *groth16.Proof {
	b.Helper()
	proof, err := pending.Finish(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	if err := groth16.Verify(b.params.SRS.Key, s.Inputs()[1:], proof); err != nil {
		b.Errorf("verify a finished proof: %v", err)
	}
	return proof
}

func (b *bench) refuses(what string, want, got error) {
	b.Helper()
	if !errors.Is(got, want) {
		b.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func (s suite) knownAnswer(t *testing.T) {
	b := s.bench(t, groth16test.KnownAnswer(), groth16test.Blinding(groth16test.KnownAnswerR, groth16test.KnownAnswerS))
	segment := b.segment(0)
	pending := b.start(segment)
	got := b.finish(pending, segment).Bytes()
	if want := groth16test.KnownAnswerProof(t); !bytes.Equal(got[:], want) {
		t.Errorf("proof %x, want %x", got, want)
	}
	times := pending.Timings()
	if times.Quotient <= 0 || times.H <= 0 || times.B2 <= 0 || times.Verify <= 0 || times.Total() < times.H+times.B2 {
		t.Errorf("timings %+v", times)
	}
}

func (s suite) randomCircuits(t *testing.T) {
	for shape, rows := range []int{2, 64, 300, 3000} {
		b := s.bench(t, groth16test.Random(uint64(shape), rows))
		segment := b.segment(1)
		first, second := b.finish(b.start(segment), segment), b.finish(b.start(segment), segment)
		if *first == *second {
			t.Errorf("%d rows: two proofs are equal: nothing is random", rows)
		}
	}
}

// Two circuits, so that a device that mixes up their tables is found.
func (s suite) equalBlinding(t *testing.T) {
	for _, rows := range []int{40, 400} {
		c := groth16test.Random(9, rows)
		one, two := s.bench(t, c, groth16test.Blinding(5, 6)), s.bench(t, c, groth16test.Blinding(5, 6))
		segment := one.segment(3)
		if *one.finish(one.start(segment), segment) != *two.finish(two.start(segment), segment) {
			t.Errorf("%d rows: proofs differ", rows)
		}
	}
}

func (s suite) otherParameters(t *testing.T) {
	b, other := s.bench(t, groth16test.Random(1, 100)), s.bench(t, groth16test.Random(2, 100))
	source := prover.Source{Segment: b.segment(0)}
	mixed := prover.Params{SRS: other.params.SRS, Artifact: b.params.Artifact}
	for what, p := range map[string]prover.Params{"parameters and artifact": other.params, "parameters": mixed} {
		_, err := b.device.Start(t.Context(), source, p)
		b.refuses("other "+what, prover.ErrMismatch, err)
	}
	segment := b.segment(1)
	b.finish(b.start(segment), segment) // it is still usable
}

func (s suite) otherSegment(t *testing.T) {
	b := s.bench(t, groth16test.Random(1, 100))
	segment := groth16test.Segment(t, groth16test.Random(2, 100), groth16test.Slice(0))
	_, err := b.device.Start(t.Context(), prover.Source{Segment: segment}, b.params)
	b.refuses("segment of another circuit", prover.ErrMismatch, err)
}

// Parameters of the right form whose proofs cannot verify.
func (s suite) wrongPoints(t *testing.T) {
	b := s.bench(t, groth16test.Random(4, 100))
	srs := *b.params.SRS
	srs.A, srs.L = srs.L, srs.A
	srs.Counts.A, srs.Counts.L = srs.Counts.L, srs.Counts.A
	_, err := b.device.Start(t.Context(), prover.Source{Segment: b.segment(0)},
		prover.Params{SRS: &srs, Artifact: b.params.Artifact})
	b.refuses("swapped lists", prover.ErrMismatch, err)
	srs = *b.params.SRS
	key := *srs.Key
	key.AlphaG1, key.DeltaG1 = key.DeltaG1, key.AlphaG1
	srs.Key = &key
	pending, err := b.device.Start(t.Context(), prover.Source{Segment: b.segment(0)},
		prover.Params{SRS: &srs, Artifact: b.params.Artifact})
	if err != nil {
		t.Fatal(err)
	}
	proof, err := pending.Finish(t.Context())
	b.refuses("wrong key", prover.ErrProof, err)
	b.refuses("wrong key", groth16.ErrInvalid, err)
	if proof != nil {
		t.Error("a proof that does not verify came back")
	}
}

func (s suite) unsatisfied(t *testing.T) {
	b := s.bench(t, groth16test.Random(5, 200))
	segment := b.segment(0)
	segment.Inputs()[1].Double(&segment.Inputs()[1])
	proof, err := b.start(segment).Finish(t.Context())
	b.refuses("unsatisfied segment", prover.ErrProof, err)
	if proof != nil {
		t.Error("a proof that does not verify came back")
	}
}

func (s suite) cancelledStart(t *testing.T) {
	b := s.bench(t, groth16test.Random(6, 200))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	segment := b.segment(0)
	pending, err := b.device.Start(ctx, prover.Source{Segment: segment}, b.params)
	b.refuses("cancelled start", context.Canceled, err)
	if pending != nil {
		t.Error("a pending proof came back")
	}
	b.finish(b.start(segment), segment) // it is still usable
}

func (s suite) cancelledFinish(t *testing.T) {
	b := s.bench(t, groth16test.Random(6, 200))
	segment := b.segment(0)
	pending := b.start(segment)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := pending.Finish(ctx)
	b.refuses("cancelled finish", context.Canceled, err)
	_, err = pending.Finish(t.Context())
	b.refuses("finish after a cancelled one", prover.ErrFinished, err)
	b.finish(b.start(segment), segment)
}

// The second starts before the first is finished, and is finished before it.
func (s suite) twoPending(t *testing.T) {
	b := s.bench(t, groth16test.Random(7, 500))
	segments := []*compact.Segment{b.segment(1), b.segment(2)}
	pending := []prover.Pending{b.start(segments[0]), b.start(segments[1])}
	for _, i := range []int{1, 0} {
		b.finish(pending[i], segments[i])
	}
	done := make(chan *groth16.Proof, 2)
	for i := range 2 {
		pending[i] = b.start(segments[i])
		go func() {
			proof, err := pending[i].Finish(context.Background())
			if err != nil {
				t.Errorf("finish beside another: %v", err)
			}
			done <- proof
		}()
	}
	for range 2 {
		<-done
	}
}

func (s suite) circuitsTakeTurns(t *testing.T) {
	b, other := s.bench(t, groth16test.Random(8, 50)), s.bench(t, groth16test.Random(9, 900))
	other.device = b.device
	one, two := b.segment(1), other.segment(1)
	first := b.start(one)
	second := other.start(two)
	third := b.start(one)
	b.finish(first, one)
	other.finish(second, two)
	b.finish(third, one)
}

func (s suite) finishTwice(t *testing.T) {
	b := s.bench(t, groth16test.Random(10, 50))
	segment := b.segment(1)
	pending := b.start(segment)
	b.finish(pending, segment)
	proof, err := pending.Finish(t.Context())
	b.refuses("finish again", prover.ErrFinished, err)
	if proof != nil {
		t.Error("the proof came back again")
	}
}

func (s suite) closeWithPending(t *testing.T) {
	b := s.bench(t, groth16test.Random(11, 50))
	pending := b.start(b.segment(1))
	for range 2 {
		if err := b.device.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	_, err := pending.Finish(t.Context())
	b.refuses("finish after close", prover.ErrClosed, err)
}

func (s suite) closed(t *testing.T) {
	b := s.bench(t, groth16test.Random(11, 50))
	if err := b.device.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	_, err := b.device.Start(t.Context(), prover.Source{Segment: b.segment(1)}, b.params)
	b.refuses("start after close", prover.ErrClosed, err)
}

func (s suite) describes(t *testing.T) {
	d := s.open(t)
	defer d.Close()
	if d.Name() == "" {
		t.Error("the device has no name")
	}
	small, large := d.Memory(r1cs.Position{Rows: 1000, Inputs: 2}), d.Memory(r1cs.Position{Rows: 1 << 26, Inputs: 2})
	one, two := large.HostPeakBytes(1), large.HostPeakBytes(2)
	if small.HostPeakBytes(1) < 1 || one+large.DeviceBytes <= small.HostPeakBytes(1)+small.DeviceBytes {
		t.Errorf("profiles %+v and %+v", small, large)
	}
	if two-one != large.PendingBytes {
		t.Errorf("a second pending proof takes %d, not %d", two-one, large.PendingBytes)
	}
}
