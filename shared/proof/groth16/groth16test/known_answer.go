package groth16test

import (
	"context"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/artifact"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
)

// KnownAnswerR and KnownAnswerS blind the proofs of the known-answer vector and of the exact proofs.
const (
	KnownAnswerR = 29
	KnownAnswerS = 31
)

// KnownAnswer is the circuit of spec c2-formats.md 3.9: out = x³ + x + 5, with the witness x = 3.
func KnownAnswer() circuit.Circuit { return knownAnswer{} }

type knownAnswer struct{}

func (knownAnswer) ID() string         { return "known-answer" }
func (knownAnswer) ParamsName() string { return "proofrack-test-known-answer" }
func (knownAnswer) SharedAux() int     { return 0 }

func (knownAnswer) Sections() []r1cs.Position {
	return []r1cs.Position{r1cs.Start(), {Rows: 3, Inputs: 2, Aux: 3, FullA: 3, FullB: 2, FullAux: 3}}
}

func term(v r1cs.Var, k int64) r1cs.Term {
	t := r1cs.Term{Var: v}
	t.Coeff.SetInt64(k)
	return t
}

func (knownAnswer) Describe(_ int, rows r1cs.RowSink) {
	out, x, y, z := r1cs.InputVar(1), r1cs.AuxVar(0), r1cs.AuxVar(1), r1cs.AuxVar(2)
	rows.Row(r1cs.LC{term(x, 1)}, r1cs.LC{term(x, 1)}, r1cs.LC{term(y, 1)})
	rows.Row(r1cs.LC{term(y, 1)}, r1cs.LC{term(x, 1)}, r1cs.LC{term(z, 1)})
	rows.Row(r1cs.LC{term(r1cs.One, 5), term(x, 1)}, r1cs.LC{term(r1cs.One, 1)}, r1cs.LC{term(out, 1), term(z, -1)})
}

func (knownAnswer) Decode(slice []byte) (circuit.Witness, error) {
	if len(slice) != 8 {
		return nil, fmt.Errorf("decode slice of the known-answer circuit: %d bytes: %w", len(slice), errSlice)
	}
	return knownAnswer{}, nil
}

func (knownAnswer) Synthesize(_ int, values r1cs.Values) {
	x, y, z, out, last := r1cs.Element(3), r1cs.Element(9), r1cs.Element(27), r1cs.Element(35), r1cs.Element(8)
	values.AuxFull(&x)
	values.AuxFull(&y)
	values.AuxFull(&z)
	values.Input(&out)
	values.FullRow(&x, &x)
	values.FullRow(&y, &x)
	values.FullBitRow(&last, 1)
}

func (knownAnswer) PublicInputs() []fr.Element { return []fr.Element{r1cs.Element(35)} }

// knownAnswerProof is the proof of the vector.
const knownAnswerProof = "" +
	"8a29dc6e6be2fd2237228916aed41a7a94901f32350ef87f4f7777f7b2e52c43af00452132d16feef025e7034f69de2a" +
	"b0ddf203c2d234242782e43b3f4b6a3e5cf171a4892f0509798e249b4d4d97aff4f0faddf036f0121ffe569672a08473" +
	"0a37d03528acd1f670126a873594d5c9906cb403897b1c3aeebbe50e1f0bb4b30a00f361d5624dd9adaaa75a99b2cbf0" +
	"b2f5c2f2e9b66a814ec3a760b4ab908a2d8a78318feb82667fd4a3be6b90415d7cf31821b5c14f05fd69fa36636d4563"

// KnownAnswerProof is the proof of the known-answer circuit under exact parameters, blinded by KnownAnswerR and
// KnownAnswerS.
func KnownAnswerProof(t testing.TB) []byte {
	t.Helper()
	proof, err := hex.DecodeString(knownAnswerProof)
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

// ExactScalars are those of the known-answer vector and of the exact parameter files.
func ExactScalars() generate.Scalars {
	return generate.Scalars{
		Alpha: r1cs.Element(11), Beta: r1cs.Element(13), Gamma: r1cs.Element(17), Delta: r1cs.Element(19),
		Tau: r1cs.Element(23),
	}
}

// Params makes exact parameters of a circuit and opens them until the test ends.
func Params(t testing.TB, c circuit.Circuit) (*srs.Params, *artifact.Artifact) {
	t.Helper()
	folder := t.TempDir()
	files, err := generate.ToFolder(context.Background(), folder, c, ExactScalars(), generate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := artifact.Build(context.Background(), c, 1)
	if err != nil {
		t.Fatal(err)
	}
	options := srs.Options{DigestCache: filepath.Join(folder, "digests.json")}
	params, err := srs.Open(context.Background(), files.ParamsPath, srs.CountsOf(a.Totals, a.Density), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := params.Close(); err != nil {
			t.Error(err)
		}
	})
	return params, a
}

// Segment synthesizes the witness of a slice.
func Segment(t testing.TB, c circuit.Circuit, slice []byte) *compact.Segment {
	t.Helper()
	layout, err := compact.LayoutOf(c)
	if err != nil {
		t.Fatal(err)
	}
	witness, err := c.Decode(slice)
	if err != nil {
		t.Fatal(err)
	}
	job := compact.Job{Circuit: c, Witness: witness, Workers: 1}
	segment, err := job.Synthesize(context.Background(), layout.Memory())
	if err != nil {
		t.Fatal(err)
	}
	return segment
}
