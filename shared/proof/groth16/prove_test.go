package groth16_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/groth16/groth16test"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

func prove(t testing.TB, p *groth16.Prover, s *compact.Segment) *groth16.Proof {
	t.Helper()
	pending, err := p.Start(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := pending.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

func digest(b []byte) string {
	d := srs.NewDigest()
	_, _ = d.Write(b)
	return d.Hex()
}

func TestKnownAnswerProof(t *testing.T) {
	t.Parallel()
	c := groth16test.KnownAnswer()
	params, a := groth16test.Params(t, c)
	if params.Digest != "4a917438cfcb64fd9ca342c9838a6b16" {
		t.Errorf("parameters have digest %s", params.Digest)
	}
	for _, workers := range []int{1, 3} {
		p, err := groth16.NewProver(params, a, groth16.WithWorkers(workers),
			groth16test.Blinding(groth16test.KnownAnswerR, groth16test.KnownAnswerS))
		if err != nil {
			t.Fatal(err)
		}
		proof := prove(t, p, groth16test.Segment(t, c, groth16test.Slice(0)))
		got := proof.Bytes()
		if want := groth16test.KnownAnswerProof(t); !bytes.Equal(got[:], want) {
			t.Errorf("%d workers: proof %x, want %x", workers, got, want)
		}
		if d := digest(got[:]); d != "6ecc583f08643b9b81227e48ec2ff9bd" {
			t.Errorf("%d workers: digest %s", workers, d)
		}
		if err := groth16.Verify(params.Key, []fr.Element{fr.NewElement(35)}, proof); err != nil {
			t.Errorf("%d workers: %v", workers, err)
		}
		err = groth16.Verify(params.Key, []fr.Element{fr.NewElement(36)}, proof)
		if !errors.Is(err, groth16.ErrInvalid) {
			t.Errorf("%d workers, other input: %v", workers, err)
		}
	}
}

func TestProofsOfRandomCircuitsVerify(t *testing.T) {
	t.Parallel()
	for shape, rows := range []int{1, 3, 17, 63, 64, 65, 200, 1000, 5000} {
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			t.Parallel()
			c := groth16test.Random(uint64(shape), rows)
			params, a := groth16test.Params(t, c)
			p, err := groth16.NewProver(params, a, groth16.WithWorkers(2))
			if err != nil {
				t.Fatal(err)
			}
			key, err := groth16.Prepare(params.Key)
			if err != nil {
				t.Fatal(err)
			}
			var before *groth16.Proof
			for seed := range uint64(3) {
				s := groth16test.Segment(t, c, groth16test.Slice(seed/2))
				if err := s.Check(c, 1); err != nil {
					t.Fatal(err)
				}
				proof := prove(t, p, s)
				if err := key.Verify(s.Inputs()[1:], proof); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				if before != nil && *before == *proof {
					t.Errorf("seed %d: the proof is that of before: nothing is random", seed)
				}
				before = proof
			}
		})
	}
}

func TestProverRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	c, other := groth16test.Random(1, 100), groth16test.Random(2, 100)
	params, a := groth16test.Params(t, c)
	otherParams, otherArtifact := groth16test.Params(t, other)
	if _, err := groth16.NewProver(params, otherArtifact); !errors.Is(err, groth16.ErrCounts) {
		t.Errorf("artifact of another circuit: %v", err)
	}
	if _, err := groth16.NewProver(otherParams, a); !errors.Is(err, groth16.ErrCounts) {
		t.Errorf("parameters of another circuit: %v", err)
	}
	p, err := groth16.NewProver(params, a)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Start(t.Context(), groth16test.Segment(t, other, groth16test.Slice(0)))
	if !errors.Is(err, groth16.ErrCounts) {
		t.Errorf("segment of another circuit: %v", err)
	}
	pending, err := p.Start(t.Context(), groth16test.Segment(t, c, groth16test.Slice(0)))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, groth16.ErrFinished} {
		if _, err := pending.Finish(t.Context()); !errors.Is(err, want) {
			t.Errorf("finish %d: %v, want %v", i, err, want)
		}
	}
}

func TestProverStopsWithTheContext(t *testing.T) {
	t.Parallel()
	c := groth16test.Random(3, 100)
	params, a := groth16test.Params(t, c)
	stages := []groth16.Stage{
		groth16.StageQuotient, groth16.StageH, groth16.StageL, groth16.StageA, groth16.StageB1, groth16.StageB2,
	}
	for _, last := range stages {
		ctx, cancel := context.WithCancel(t.Context())
		var seen []groth16.Stage
		p, err := groth16.NewProver(params, a, groth16.WithObserver(func(s groth16.Stage) func() {
			seen = append(seen, s)
			if s == last {
				cancel()
			}
			return func() {}
		}))
		if err != nil {
			t.Fatal(err)
		}
		pending, err := p.Start(ctx, groth16test.Segment(t, c, groth16test.Slice(0)))
		if err == nil {
			_, err = pending.Finish(ctx)
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled in %s: %v", last, err)
		}
		if n := len(seen); last != groth16.StageQuotient && seen[n-1] != last {
			t.Errorf("cancelled in %s, went on to %s", last, seen[n-1])
		}
		cancel()
	}
}
