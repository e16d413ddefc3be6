package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/proof/artifact"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
	"github.com/proofrack/proofrack/shared/prover"
	"github.com/proofrack/proofrack/shared/prover/simdevice"
)

// squares is the canary's circuit: x is squared again and again, the last square is the public input.
type squares struct{}

const squareCount = 1000

var errNoSlice = errors.New("the canary has no slices")

func (squares) ID() string         { return "canary" }
func (squares) ParamsName() string { return "proofrack-canary" }
func (squares) SharedAux() int     { return 0 }

func (squares) Sections() []r1cs.Position {
	return []r1cs.Position{r1cs.Start(), {
		Rows: squareCount, Inputs: 2, Aux: squareCount, FullA: squareCount, FullB: squareCount, FullAux: squareCount,
	}}
}

func one(v r1cs.Var) r1cs.LC {
	t := r1cs.Term{Var: v}
	t.Coeff.SetOne()
	return r1cs.LC{t}
}

func (squares) Describe(_ int, rows r1cs.RowSink) {
	for i := range squareCount {
		next := r1cs.InputVar(1)
		if i+1 < squareCount {
			next = r1cs.AuxVar(i + 1)
		}
		rows.Row(one(r1cs.AuxVar(i)), one(r1cs.AuxVar(i)), one(next))
	}
}

func (squares) Decode([]byte) (circuit.Witness, error) { return nil, errNoSlice }

func (squares) Synthesize(_ int, values r1cs.Values) {
	x := squares{}.start()
	for range squareCount {
		values.AuxFull(&x)
		values.FullRow(&x, &x)
		x.Square(&x)
	}
	values.Input(&x)
}

func (squares) start() fr.Element { return r1cs.Element(3) }

func (squares) PublicInputs() []fr.Element {
	x := squares{}.start()
	for range squareCount {
		x.Square(&x)
	}
	return []fr.Element{x}
}

// canary proves a known answer on the device: a computation whose result the processor has, under parameters made for
// it. A device that cannot do that gets no work.
func (s *server) canary(ctx context.Context) (err error) {
	folder, err := os.MkdirTemp("", "proofrack-canary-")
	if err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	params, err := canaryParams(ctx, folder)
	if err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	defer func() { err = errors.Join(err, params.SRS.Close()) }()
	layout, err := compact.LayoutOf(squares{})
	if err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	job := compact.Job{Circuit: squares{}, Witness: squares{}, Workers: 1}
	segment, err := job.Synthesize(ctx, layout.Memory())
	if err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	s.step("canary")
	defer s.step("canary done")
	var simulate *simdevice.Config
	if s.setup.Simulate != nil {
		lasting := s.setup.Simulate.Lasting()
		simulate = &lasting
	}
	device, err := s.openDevice(simulate)
	if err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	pending, err := device.Start(ctx, prover.Source{Segment: segment}, params)
	if err != nil {
		return fault.As(fault.Device, fmt.Errorf("canary: %w", err))
	}
	proof, err := pending.Finish(ctx)
	if err != nil {
		return fault.As(fault.Device, fmt.Errorf("canary: %w", err))
	}
	key, err := groth16.Prepare(params.SRS.Key)
	if err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	if err := key.Verify(squares{}.PublicInputs(), proof); err != nil {
		return fault.As(fault.Device, fmt.Errorf("canary: device gave a wrong answer: %w", err))
	}
	return nil
}

func canaryParams(ctx context.Context, folder string) (prover.Params, error) {
	scalars := generate.FromSeed("canary", squares{}.ID())
	files, err := generate.ToFolder(ctx, folder, squares{}, scalars, generate.Options{})
	if err != nil {
		return prover.Params{}, err
	}
	a, err := artifact.Build(ctx, squares{}, 1)
	if err != nil {
		return prover.Params{}, err
	}
	opened, err := srs.Open(ctx, files.ParamsPath, srs.CountsOf(a.Totals, a.Density),
		srs.Options{DigestCache: filepath.Join(folder, "digests.json")})
	if err != nil {
		return prover.Params{}, err
	}
	return prover.Params{SRS: opened, Artifact: a}, nil
}
