package poseidon8

import (
	"math/big"
	"strconv"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/proof/poseidon"
)

// drawHashes draws the inputs of up to 19 hashes.
func drawHashes(t *rapid.T, arity int) [][]fr.Element {
	all := make([][]fr.Element, rapid.IntRange(0, 19).Draw(t, "count"))
	for k := range all {
		all[k] = make([]fr.Element, arity)
		for i := range all[k] {
			all[k][i] = drawElement(t)
		}
	}
	return all
}

func newTraces(count, arity int) [][]fr.Element {
	traces := make([][]fr.Element, count)
	for k := range traces {
		traces[k] = make([]fr.Element, TraceLen(arity))
	}
	return traces
}

// plainTrace computes a trace from the definition of the hash, one operation at a time.
func plainTrace(p *poseidon.Params, inputs []fr.Element) []fr.Element {
	var trace []fr.Element
	constants := p.C[p.Width:]
	sbox := func(x *fr.Element, last, listed bool) {
		var square, fourth, fifth fr.Element
		square.Mul(x, x)
		fourth.Mul(&square, &square)
		fifth.Mul(&fourth, x)
		if !last {
			fifth.Add(&fifth, &constants[0])
			constants = constants[1:]
		}
		if listed {
			trace = append(trace, *x, square, fourth, fifth)
		}
		*x = fifth
	}
	state := append([]fr.Element{p.Tag}, inputs...)
	for i := range state {
		state[i].Add(&state[i], &p.C[i])
	}
	mix := func(matrix [][]fr.Element) {
		next := make([]fr.Element, p.Width)
		for i := range state {
			for j := range next {
				var product fr.Element
				next[j].Add(&next[j], product.Mul(&state[i], &matrix[i][j]))
			}
		}
		state = next
	}
	rounds := p.FullRounds + p.PartialRounds
	for round := range rounds {
		half, matrix := p.FullRounds/2, p.M
		if round == half-1 {
			matrix = p.P
		}
		if round >= half && round < half+p.PartialRounds {
			sbox(&state[0], false, true)
			sparse := p.Sparse[round-half]
			matrix = make([][]fr.Element, p.Width)
			for i := range matrix {
				matrix[i] = make([]fr.Element, p.Width)
				matrix[i][0] = sparse.What[i]
				if i > 0 {
					matrix[i][i].SetOne()
					matrix[0][i] = sparse.V[i-1]
				}
			}
		} else {
			for i := range state {
				sbox(&state[i], round == rounds-1, round > 0 || i > 0)
			}
		}
		mix(matrix)
	}
	return append(trace, state[1])
}

func TestTraceHasEveryValue(t *testing.T) {
	t.Parallel()
	if !CanTrace() {
		t.Skip("no 52-bit multiply-add on this processor")
	}
	rapid.Check(t, func(t *rapid.T) {
		arity := rapid.SampledFrom([]int{2, 4, 8, 11}).Draw(t, "arity")
		inputs := drawHashes(t, arity)
		got := newTraces(len(inputs), arity)
		Trace(got, inputs)
		for k := range got {
			want := plainTrace(poseidon.Of(arity), inputs[k])
			if len(want) != len(got[k]) || want[len(want)-1] != poseidon.Hash(inputs[k]) {
				t.Fatalf("arity %d: model of %d values, trace of %d", arity, len(want), len(got[k]))
			}
			for i := range want {
				if got[k][i] != want[i] {
					t.Fatalf("arity %d, hash %d of %d, value %d of %d: got %v, want %v",
						arity, k, len(got), i, len(want), got[k][i], want[i])
				}
			}
		}
	})
}

// The kernel alone, at both ends of what it takes: its results are canonical whatever representative it is given.
func TestTraceKernelReducesFully(t *testing.T) {
	t.Parallel()
	if !CanTrace() {
		t.Skip("no 52-bit multiply-add on this processor")
	}
	modulus := fr.Modulus()
	rapid.Check(t, func(t *rapid.T) {
		var values [lanes][traceValues]fr.Element
		var state [1]vec
		var x, want [lanes]fr.Element
		constant := drawElement(t)
		constants := split(constant)
		var dst [lanes]*fr.Element
		for k := range lanes {
			x[k], dst[k] = drawElement(t), &values[k][0]
			multiple := big.NewInt(int64(rapid.IntRange(0, 15).Draw(t, "multiple")))
			value := valueOf(split(x[k]))
			state[0].setLane(k, limbsOf(value.Add(value, multiple.Mul(multiple, modulus))))
			want[k].Square(&x[k]).Square(&want[k]).Mul(&want[k], &x[k]).Add(&want[k], &constant)
		}
		var work traceWork
		trace(&dst, &state[0], &constants, &work, 0, 1)
		for k := range lanes {
			var square, fourth fr.Element
			square.Square(&x[k])
			fourth.Square(&square)
			if got := values[k]; got != [traceValues]fr.Element{x[k], square, fourth, want[k]} {
				t.Fatalf("lane %d, x = %v: got %v", k, x[k], got)
			}
			if got := state[0].lane(k); got != split(want[k]) {
				t.Fatalf("lane %d: state is %x", k, got)
			}
		}
	})
}

func TestTracePanicsOnWrongLengths(t *testing.T) {
	t.Parallel()
	inputs := [][]fr.Element{make([]fr.Element, 8), make([]fr.Element, 8)}
	short := newTraces(2, 8)
	short[1] = short[1][1:]
	for name, call := range map[string]func(){
		"number of traces": func() { Trace(newTraces(1, 8), inputs) },
		"length of trace":  func() { Trace(short, inputs) },
		"arity":            func() { Trace(newTraces(2, 8), [][]fr.Element{inputs[0], inputs[1][:4]}) },
		"unknown arity":    func() { Trace(newTraces(1, 8), [][]fr.Element{inputs[0][:3]}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("wrong %s did not panic", name)
				}
			}()
			call()
		}()
	}
}

func BenchmarkTrace(b *testing.B) {
	if !CanTrace() {
		b.Skip("no 52-bit multiply-add on this processor")
	}
	for _, arity := range []int{2, 8, 11} {
		inputs := make([][]fr.Element, lanes)
		for k := range inputs {
			inputs[k] = make([]fr.Element, arity)
			for i := range inputs[k] {
				inputs[k][i].MustSetRandom()
			}
		}
		dst := newTraces(lanes, arity)
		b.Run("arity="+strconv.Itoa(arity), func(b *testing.B) {
			for b.Loop() {
				Trace(dst, inputs)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lanes, "ns/hash")
		})
	}
}
