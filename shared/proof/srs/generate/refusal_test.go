package generate

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

func TestMain(m *testing.M) {
	if limited() {
		return
	}
	goleak.VerifyTestMain(m)
}

// oneRow is a circuit of a single section with the given rows.
func oneSection(rows []row, inputs, aux int) *listed {
	return &listed{
		name: "bad", sections: [][]row{rows}, shared: 0,
		starts: []r1cs.Position{r1cs.Start(), {Rows: len(rows), Inputs: inputs, Aux: aux}},
	}
}

// vanishing is a circuit where A0 occurs twice in A, with coefficients that cancel at tau.
func vanishing(tau fr.Element) *listed {
	l := lagrangeByFFT(2, tau)
	var k fr.Element
	k.Div(&l[0], &l[1]).Neg(&k)
	x := r1cs.AuxVar(0)
	return oneSection([]row{
		{a: r1cs.LC{term(x, 1)}, c: r1cs.LC{term(x, 1)}},
		{a: r1cs.LC{{Var: x, Coeff: k}}},
	}, 1, 1)
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	good := exact()
	without := func(change func(*Scalars)) Scalars {
		s := exact()
		change(&s)
		return s
	}
	root, err := fft.Generator(8)
	if err != nil {
		t.Fatal(err)
	}
	short := knownAnswer()
	short.starts[1].Rows = 4
	for name, c := range map[string]struct {
		circuit Circuit
		scalars Scalars
		want    error
		text    string
	}{
		"gamma 0":           {knownAnswer(), without(func(s *Scalars) { s.Gamma.SetZero() }), ErrScalars, "gamma is 0"},
		"delta 0":           {knownAnswer(), without(func(s *Scalars) { s.Delta.SetZero() }), ErrScalars, "delta is 0"},
		"tau in the domain": {knownAnswer(), without(func(s *Scalars) { s.Tau = root }), ErrScalars, "order 2^3"},
		"an unused variable": {oneSection([]row{{a: r1cs.LC{term(r1cs.One, 1)}}}, 1, 1), good, ErrUnconstrained,
			"variable A0"},
		"a sum that vanishes": {vanishing(good.Tau), good, ErrScalars, "variable A0 vanish"},
		"rows missing":        {short, good, ErrCircuit, "3 rows, 4 announced"},
	} {
		_, err := Write(t.Context(), io.Discard, c.circuit, c.scalars, Options{})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v with %q", name, err, c.want, c.text)
		}
	}
}

func TestVariableOfAnotherSectionPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if got := recover(); got == nil || !strings.Contains(got.(string), "variable A1") {
			t.Errorf("got %v", got)
		}
	}()
	d, err := newDomain(3, exact().Tau)
	if err != nil {
		t.Fatal(err)
	}
	private := newColumns(2)
	private.first = 2
	r := &rows{lagrange: d.lagrangeFrom(0), inputs: newColumns(1), shared: newColumns(1), private: private}
	r.Row(r1cs.LC{term(r1cs.AuxVar(1), 1)}, nil, nil)
}

func TestSeededScalarsAreFixed(t *testing.T) {
	t.Parallel()
	got := FromSeed("seed", "circuit")
	want := "43fb750774fa80b4733b19b0b692bad7313cfa7a90f15286643d5443b09eafa4"
	if hex := got.Tau.Text(16); hex != want {
		t.Errorf("tau is %s, want %s: files of earlier versions cannot be made again", hex, want)
	}
	if got != FromSeed("seed", "circuit") {
		t.Error("the same seed gives other scalars")
	}
	seen := map[fr.Element]bool{}
	others := []Scalars{FromSeed("seed", "circuit2"), FromSeed("seedcircuit", ""), FromSeed("", "seedcircuit")}
	for _, s := range append(others, got) {
		for _, e := range []fr.Element{s.Alpha, s.Beta, s.Gamma, s.Delta, s.Tau} {
			if seen[e] {
				t.Errorf("%v occurs twice", &e)
			}
			seen[e] = true
		}
	}
}

// failing is a writer that fails after some bytes.
type failing struct {
	w    io.Writer
	left int
	err  error
}

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, f.err
	}
	return f.w.Write(p)
}

func TestWriteFailsWithItsWriter(t *testing.T) {
	t.Parallel()
	wantErr := errors.New("writer broke")
	for left := 0; left < 3000; left += 96 {
		_, err := Write(t.Context(), &failing{io.Discard, left, wantErr}, knownAnswer(), exact(), Options{})
		if !errors.Is(err, wantErr) {
			t.Errorf("after %d bytes: got %v", left, err)
		}
	}
}

func TestProgressGoesThroughAllStages(t *testing.T) {
	t.Parallel()
	var stages []Stage
	last := map[Stage][2]int64{}
	o := Options{Progress: func(stage Stage, done, total int64) {
		if len(stages) == 0 || stages[len(stages)-1] != stage {
			stages = append(stages, stage)
		}
		last[stage] = [2]int64{done, total}
	}}
	if _, err := Write(t.Context(), io.Discard, knownAnswer(), exact(), o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Stages(), stages); diff != "" {
		t.Error(diff)
	}
	want := map[Stage][2]int64{
		StageRows: {3, 3}, StageH: {7, 7}, StageL: {3, 3}, StageA: {4, 4}, StageB1: {2, 2}, StageB2: {2, 2},
	}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Error(diff)
	}
}

func TestWriteStopsWithTheContext(t *testing.T) {
	t.Parallel()
	for _, stage := range []Stage{StageRows, StageH, StageA} {
		ctx, cancel := context.WithCancel(t.Context())
		o := Options{Progress: func(at Stage, _, _ int64) {
			if at == stage {
				cancel()
			}
		}}
		if _, err := Write(ctx, io.Discard, knownAnswer(), exact(), o); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled in %s: got %v", stage, err)
		}
		cancel()
	}
}

func TestCountsAgreeWithTheReader(t *testing.T) {
	t.Parallel()
	c := knownAnswer()
	density := r1cs.NewDensity(c.starts[1])
	c.Describe(0, density)
	want := srs.Counts{IC: 2, H: 7, L: 3, A: 4, B: 2}
	if diff := cmp.Diff(want, srs.CountsOf(c.starts[1], density)); diff != "" {
		t.Error(diff)
	}
}
