package groth16

import (
	"errors"
	"math/big"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/proof/srs"
)

// forger knows the scalars of a key, so that it can prove anything.
type forger struct {
	alpha, beta, gamma, delta fr.Element
	ic                        []fr.Element
}

func newForger(inputCount int) *forger {
	f := &forger{ic: make([]fr.Element, inputCount+1)}
	for _, e := range []*fr.Element{&f.alpha, &f.beta, &f.gamma, &f.delta} {
		e.MustSetRandom()
	}
	fr.Vector(f.ic).MustSetRandom()
	return f
}

func times1(e *fr.Element) (p bls12381.G1Affine) {
	p.ScalarMultiplicationBase(e.BigInt(new(big.Int)))
	return p
}

func times2(e *fr.Element) (p bls12381.G2Affine) {
	p.ScalarMultiplicationBase(e.BigInt(new(big.Int)))
	return p
}

func (f *forger) key(t testing.TB) *PreparedKey {
	t.Helper()
	key := &srs.VerifyingKey{
		AlphaG1: times1(&f.alpha), BetaG1: times1(&f.beta), DeltaG1: times1(&f.delta),
		BetaG2: times2(&f.beta), GammaG2: times2(&f.gamma), DeltaG2: times2(&f.delta),
	}
	for i := range f.ic {
		key.IC = append(key.IC, times1(&f.ic[i]))
	}
	k, err := Prepare(key)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// forge makes a valid proof: C = (ab - alpha beta - acc gamma) / delta.
func (f *forger) forge(inputs []fr.Element) Proof {
	var a, b, c, acc, term fr.Element
	a.MustSetRandom()
	b.MustSetRandom()
	acc = f.ic[0]
	for i := range inputs {
		acc.Add(&acc, term.Mul(&inputs[i], &f.ic[i+1]))
	}
	c.Mul(&a, &b).Sub(&c, term.Mul(&f.alpha, &f.beta)).Sub(&c, acc.Mul(&acc, &f.gamma)).Div(&c, &f.delta)
	return Proof{A: times1(&a), B: times2(&b), C: times1(&c)}
}

func (f *forger) batch(n int) ([][]fr.Element, []Proof) {
	inputs, proofs := make([][]fr.Element, n), make([]Proof, n)
	for i := range inputs {
		inputs[i] = make([]fr.Element, len(f.ic)-1)
		fr.Vector(inputs[i]).MustSetRandom()
		proofs[i] = f.forge(inputs[i])
	}
	return inputs, proofs
}

func TestBatchesOfGoodProofsVerify(t *testing.T) {
	t.Parallel()
	f := newForger(3)
	key := f.key(t)
	for _, n := range []int{1, 2, 3, 10} {
		inputs, proofs := f.batch(n)
		if err := key.VerifyBatch(inputs, proofs); err != nil {
			t.Errorf("%d proofs: %v", n, err)
		}
		z, err := weights(n)
		if err != nil {
			t.Fatal(err)
		}
		// VerifyBatch looks at proofs one by one when the combination fails, so the combination is tried itself.
		if err := key.checkBatch(inputs, proofs, z); err != nil {
			t.Errorf("%d proofs combined: %v", n, err)
		}
	}
}

func TestBatchErrorsNameTheBadProofs(t *testing.T) {
	t.Parallel()
	f := newForger(2)
	key := f.key(t)
	for name, c := range map[string]struct {
		n      int
		change func(inputs [][]fr.Element, proofs []Proof)
		want   []int
	}{
		"alone":           {1, func(_ [][]fr.Element, p []Proof) { p[0].A.Neg(&p[0].A) }, []int{0}},
		"C of another":    {5, func(_ [][]fr.Element, p []Proof) { p[3].C = p[2].C }, []int{3}},
		"inputs":          {4, func(x [][]fr.Element, _ []Proof) { x[0][1].Double(&x[0][1]) }, []int{0}},
		"two swapped":     {4, func(_ [][]fr.Element, p []Proof) { p[1], p[2] = p[2], p[1] }, []int{1, 2}},
		"that cancel out": {3, cancel, []int{0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inputs, proofs := f.batch(c.n)
			c.change(inputs, proofs)
			err := key.VerifyBatch(inputs, proofs)
			var bad *BatchError
			if !errors.As(err, &bad) || !errors.Is(err, ErrInvalid) {
				t.Fatalf("got %v, want a BatchError", err)
			}
			if diff := cmp.Diff(&BatchError{Bad: c.want, Count: c.n}, bad); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// cancel makes errors in C that a combination with equal weights would not notice.
func cancel(_ [][]fr.Element, p []Proof) {
	_, _, g, _ := bls12381.Generators()
	var minus bls12381.G1Affine
	minus.Neg(&g)
	p[0].C.Add(&p[0].C, &g)
	p[2].C.Add(&p[2].C, &minus)
}

func TestErrorsThatCancelPassWithEqualWeights(t *testing.T) {
	t.Parallel()
	f := newForger(2)
	key := f.key(t)
	inputs, proofs := f.batch(3)
	cancel(inputs, proofs)
	ones := []fr.Element{fr.One(), fr.One(), fr.One()}
	if err := key.checkBatch(inputs, proofs, ones); err != nil {
		t.Errorf("the test above tests nothing: %v", err)
	}
}

func TestWeightsAre128RandomBits(t *testing.T) {
	t.Parallel()
	z, err := weights(200)
	if err != nil {
		t.Fatal(err)
	}
	seen, long := map[fr.Element]bool{}, 0
	for i := range z {
		seen[z[i]] = true
		n := z[i].BigInt(new(big.Int)).BitLen()
		if n > 128 {
			t.Errorf("weight of %d bits", n)
		}
		if n > 120 {
			long++
		}
	}
	if len(seen) != len(z) || long < 180 {
		t.Errorf("%d different weights of 200, %d above 2^120", len(seen), long)
	}
}

func TestWrongNumberOfInputsIsAnErrorOfItsOwn(t *testing.T) {
	t.Parallel()
	f := newForger(3)
	key := f.key(t)
	good, proofs := f.batch(1)
	inputs, proof := good[0], &proofs[0]
	for name, bad := range map[string][]fr.Element{
		"none": nil, "one less": inputs[1:], "one more": append(inputs[:len(inputs):len(inputs)], fr.One()),
	} {
		if err := key.Verify(bad, proof); !errors.Is(err, ErrInputCount) || errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInputCount", name, err)
		}
		err := key.VerifyBatch([][]fr.Element{inputs, bad}, []Proof{*proof, *proof})
		if !errors.Is(err, ErrInputCount) {
			t.Errorf("%s in a batch: got %v, want ErrInputCount", name, err)
		}
	}
}

func TestListsOfDifferentLengthsAreRefused(t *testing.T) {
	t.Parallel()
	f := newForger(1)
	key := f.key(t)
	inputs, proofs := f.batch(2)
	for name, c := range map[string]struct {
		inputs [][]fr.Element
		proofs []Proof
	}{"empty": {nil, nil}, "inputs missing": {inputs[:1], proofs}, "proof missing": {inputs, proofs[:1]}} {
		if err := key.VerifyBatch(c.inputs, c.proofs); !errors.Is(err, ErrInputCount) {
			t.Errorf("%s: got %v, want ErrInputCount", name, err)
		}
	}
}

// benchmarkInputs is the number of public inputs of a partition of 32 GiB (spec c2-formats.md 2.3).
const benchmarkInputs = 327

func BenchmarkPreparedKeyVerify(b *testing.B) {
	f := newForger(benchmarkInputs)
	key := f.key(b)
	inputs, proofs := f.batch(1)
	for b.Loop() {
		if err := key.Verify(inputs[0], &proofs[0]); err != nil {
			b.Fatal(err)
		}
	}
}

// The batch is a job of 32 GiB.
func BenchmarkPreparedKeyVerifyBatch(b *testing.B) {
	f := newForger(benchmarkInputs)
	key := f.key(b)
	inputs, proofs := f.batch(10)
	for b.Loop() {
		if err := key.VerifyBatch(inputs, proofs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseProofs(b *testing.B) {
	_, proofs := newForger(1).batch(10)
	var data []byte
	for i := range proofs {
		data = proofs[i].Append(data)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := ParseProofs(data, len(proofs)); err != nil {
			b.Fatal(err)
		}
	}
}
