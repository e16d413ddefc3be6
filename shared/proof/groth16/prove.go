package groth16

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/artifact"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/groth16/internal/blinding"
	"github.com/proofrack/proofrack/shared/proof/msm"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// What a prover refuses.
var (
	// ErrCounts: parameters, artifact and segment are not of the same circuit.
	ErrCounts = errors.New("point counts do not match the circuit")
	// ErrFinished: a pending proof was finished or dropped before.
	ErrFinished = errors.New("proof was finished before")
)

// Stage is a part of proving, for those who measure.
type Stage string

// The stages, in their order.
const (
	StageQuotient Stage = "quotient" // transforms
	StageH        Stage = "msm h"
	StageL        Stage = "msm l"
	StageA        Stage = "msm a"
	StageB1       Stage = "msm b_g1"
	StageB2       Stage = "msm b_g2"
	StageAssemble Stage = "assemble"
)

// Option tunes a Prover.
type Option func(*Prover)

// WithWorkers sets the number of goroutines; less than 1 means 1.
func WithWorkers(n int) Option { return func(p *Prover) { p.workers = max(1, n) } }

// WithObserver has every stage reported when it begins; the function that it returns is called when the stage ends.
func WithObserver(observe func(Stage) (end func())) Option {
	return func(p *Prover) { p.observe = observe }
}

// Memory is where a prover's two vectors lie.
type Memory interface {
	// Allocate gives n field elements of any values.
	Allocate(n int) (fr.Vector, error)
	// Free takes back what Allocate gave.
	Free(fr.Vector)
}

// heap is the memory of the Go runtime.
type heap struct{}

func (heap) Allocate(n int) (fr.Vector, error) { return make(fr.Vector, n), nil }
func (heap) Free(fr.Vector)                    {}

// WithMemory keeps the vectors elsewhere than in the Go heap, where 8 GiB would let as much garbage pile up.
func WithMemory(m Memory) Option { return func(p *Prover) { p.memory = m } }

// WithBlinding replaces the random scalars. Only test helpers can make the argument.
func WithBlinding(source blinding.Source) Option { return func(p *Prover) { p.blinding = source } }

// Prover proves partitions of one circuit on the CPU. It keeps two vectors of the domain's size between proofs; their
// memory is given back by Close.
type Prover struct {
	params   *srs.Params
	artifact *artifact.Artifact
	workers  int
	observe  func(Stage) (end func())
	blinding blinding.Source
	memory   Memory

	quotient *quotient
	scratch  sync.Mutex // held while the vectors are in use
	vectors  [2]fr.Vector
}

// NewProver prepares proving. It refuses parameters that are not the artifact's circuit's. Both must stay open.
func NewProver(params *srs.Params, a *artifact.Artifact, options ...Option) (*Prover, error) {
	if want := srs.CountsOf(a.Totals, a.Density); params.Counts != want {
		return nil, fmt.Errorf("%w: %s has %v, circuit %s needs %v",
			ErrCounts, params.Path, params.Counts, a.CircuitID, want)
	}
	p := newProver(options)
	p.params, p.artifact = params, a
	q, err := newQuotient(a.Totals.DomainBits(), p.workers)
	if err != nil {
		return nil, fmt.Errorf("prepare proofs of circuit %s: %w", a.CircuitID, err)
	}
	p.quotient = q
	return p, nil
}

func newProver(options []Option) *Prover {
	p := &Prover{workers: 1, observe: func(Stage) func() { return func() {} }, memory: heap{}}
	for _, option := range options {
		option(p)
	}
	return p
}

// Close gives the prover's memory back.
func (p *Prover) Close() {
	p.scratch.Lock()
	defer p.scratch.Unlock()
	for i := range p.vectors {
		if p.vectors[i] != nil {
			p.memory.Free(p.vectors[i])
			p.vectors[i] = nil
		}
	}
}

// Pending is a proof whose G1 part is done.
type Pending struct {
	prover   *Prover
	segment  *compact.Segment
	sums     Sums
	finished atomic.Bool
}

// Start does all work but the G2 sum: transforms and the sums over H, L, A and B1. The segment must be verified (see
// compact.Segment.Verify) and stay as it is until Finish returns.
func (p *Prover) Start(ctx context.Context, s *compact.Segment) (*Pending, error) {
	if s.CircuitID() != p.artifact.CircuitID || s.Counts() != p.artifact.Totals {
		return nil, fmt.Errorf("%w: segment is of circuit %s, parameters of %s",
			ErrCounts, s.CircuitID(), p.artifact.CircuitID)
	}
	work := &Pending{prover: p, segment: s}
	h, err := p.sumH(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("compute the sum over H: %w", err)
	}
	l, err := p.sumG1(ctx, StageL, p.queryL(), s)
	if err == nil {
		work.sums.A, err = p.sumG1(ctx, StageA, p.queryA(), s)
	}
	if err == nil {
		work.sums.B1, err = p.sumG1(ctx, StageB1, p.queryB(p.params.B1), s)
	}
	if err != nil {
		return nil, fmt.Errorf("compute the sums over L, A and B1: %w", err)
	}
	work.sums.C.Add(&h, &l)
	return work, nil
}

// sumH computes the quotient's coefficients and their sum over the H points.
func (p *Prover) sumH(ctx context.Context, s *compact.Segment) (sum bls12381.G1Affine, err error) {
	p.scratch.Lock()
	defer p.scratch.Unlock()
	for i := range p.vectors {
		if p.vectors[i] == nil {
			if p.vectors[i], err = p.memory.Allocate(p.quotient.size()); err != nil {
				return sum, fmt.Errorf("allocate vector %d of 2: %w", i+1, err)
			}
		}
	}
	end := p.observe(StageQuotient)
	err = p.quotient.compute(ctx, s, s.Counts().RowsTotal(), p.vectors[0], p.vectors[1])
	end()
	if err != nil {
		return sum, err
	}
	defer p.observe(StageH)()
	return p.streamH(ctx, p.vectors[0])
}

// chunkH is how many H points are summed at once.
const chunkH = 1 << 20

func (p *Prover) streamH(ctx context.Context, h fr.Vector) (sum bls12381.G1Affine, err error) {
	points := p.params.H
	acc, err := msm.NewG1Accumulator(msm.Config{Workers: p.workers, ScalarCount: points.Len()})
	if err != nil {
		return sum, err
	}
	for from := 0; from < points.Len(); from += chunkH {
		to := min(from+chunkH, points.Len())
		points.Expect(to, min(to+chunkH, points.Len()))
		bases, err := basesG1(points, from, to)
		if err != nil {
			return sum, fmt.Errorf("read points %d…%d of section h: %w", from, to, err)
		}
		if err := acc.Add(ctx, bases, h[from:to]); err != nil {
			return sum, fmt.Errorf("sum points %d…%d of section h: %w", from, to, err)
		}
		points.Release(from, to)
	}
	return acc.Result(ctx)
}

func (p *Prover) queryL() *query {
	none := make([]uint64, len(p.artifact.Density.BInputs))
	return &query{points: p.params.L, inputs: none, auxCount: p.artifact.Totals.Aux}
}

// queryA has all inputs: the appended input rows make them dense (spec c2-circuit.md 1.3).
func (p *Prover) queryA() *query {
	inputs := make([]uint64, len(p.artifact.Density.BInputs))
	for i := range inputs {
		inputs[i] = ^uint64(0)
	}
	return &query{points: p.params.A, inputs: inputs, aux: p.artifact.Density.AAux}
}

func (p *Prover) queryB(points srs.Section) *query {
	return &query{points: points, inputs: p.artifact.Density.BInputs, aux: p.artifact.Density.BAux}
}

// config guesses the number of scalars that are neither 0 nor 1 by the share of full auxiliaries.
func (p *Prover) config(q *query) msm.Config {
	totals := p.artifact.Totals
	share := int(int64(totals.FullAux) * int64(q.points.Len()) / int64(max(1, totals.Aux)))
	return msm.Config{Workers: p.workers, ScalarCount: max(1, share)}
}

func (p *Prover) sumG1(ctx context.Context, stage Stage, q *query, w assignment) (point bls12381.G1Affine, err error) {
	defer p.observe(stage)()
	acc, err := msm.NewG1Accumulator(p.config(q))
	if err != nil {
		return point, err
	}
	if err := sum(ctx, q, w, basesG1, accumulator[msm.G1Bases](acc)); err != nil {
		return point, err
	}
	return acc.Result(ctx)
}

func (p *Prover) sumG2(ctx context.Context, stage Stage, q *query, w assignment) (point bls12381.G2Affine, err error) {
	defer p.observe(stage)()
	acc, err := msm.NewG2Accumulator(p.config(q))
	if err != nil {
		return point, err
	}
	if err := sum(ctx, q, w, basesG2, accumulator[msm.G2Bases](acc)); err != nil {
		return point, err
	}
	return acc.Result(ctx)
}

// Finish does the G2 sum and puts the proof together. A pending proof can be finished once. The proof is not verified
// here.
func (w *Pending) Finish(ctx context.Context) (*Proof, error) {
	if w.finished.Swap(true) {
		return nil, ErrFinished
	}
	p, s := w.prover, w.segment
	sums := w.sums
	var err error
	sums.B2, err = p.sumG2(ctx, StageB2, p.queryB(p.params.B2), s)
	if err != nil {
		return nil, fmt.Errorf("compute the sum over B2: %w", err)
	}
	return Assemble(p.params.Key, &sums, WithObserver(p.observe), WithBlinding(p.blinding))
}
