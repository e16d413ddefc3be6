package poseidon8

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/poseidon"
)

// traceWork is what the kernel trace keeps of one element: two vectors and the words of four.
type traceWork [2*5 + 4*4][lanes]uint64

const (
	// traceValues is how many values a trace has of one S-box: x, x², x⁴ and x⁵ with the constant added.
	traceValues = 4
	// elementBytes is the size of an element in memory.
	elementBytes = 32
)

// CanTrace says whether the processor has what Trace needs.
func CanTrace() bool { return supported() }

// TraceLen is the length of a trace for an arity of 2, 4, 8 or 11.
func TraceLen(arity int) int {
	p := poseidon.Of(arity)
	return traceValues*(p.Arity+(p.FullRounds-1)*p.Width+p.PartialRounds) + 1
}

// Trace computes the hashes of several inputs and writes to dst[k] every intermediate value of the k-th that a circuit
// has a variable for: x, x², x⁴ and x⁵ + constant of each S-box in order, where x is the S-box's input, without that of
// the domain tag in the first round; last, the hash. All inputs have the same length, a supported arity; every list of
// dst has TraceLen of it. It panics when lengths differ or CanTrace is false.
func Trace(dst, inputs [][]fr.Element) {
	if len(dst) != len(inputs) {
		panic(fmt.Sprintf("poseidon8: room for %d traces of %d hashes", len(dst), len(inputs)))
	}
	if len(inputs) == 0 {
		return
	}
	arity := len(inputs[0])
	length := TraceLen(arity)
	for k := range inputs {
		if len(inputs[k]) != arity || len(dst[k]) != length {
			panic(fmt.Sprintf("poseidon8: trace %d has %d inputs and room for %d values, want %d and %d",
				k, len(inputs[k]), len(dst[k]), arity, length))
		}
	}
	p := instance(arity)
	for len(inputs) > 0 {
		count := min(len(inputs), lanes)
		p.trace(dst[:count], inputs[:count])
		dst, inputs = dst[count:], inputs[count:]
	}
}

// tracer is up to eight traces in progress. Lanes without a hash of their own repeat the last one.
type tracer struct {
	*params

	a, b      [maxWidth]vec
	now, next *[maxWidth]vec
	constants []limbs // what is left of those of the S-boxes
	work      traceWork
	dst       [lanes]*fr.Element
	offset    int // in dst, in bytes
}

// trace computes up to eight traces.
func (p *params) trace(dst, inputs [][]fr.Element) {
	t := tracer{params: p, constants: p.plain[p.width:]}
	t.now, t.next = &t.a, &t.b
	for k := range lanes {
		own := min(k, len(dst)-1)
		t.dst[k] = &dst[own][0]
		for i := range p.arity {
			t.a[i+1].setLane(k, split(inputs[own][i]))
		}
		t.a[0].setLane(k, p.plainTag)
	}
	for i := range p.arity {
		t.a[i+1].add(&p.plain[i+1])
	}
	t.constants = t.constants[1:] // the tag's
	t.substitute(1, p.arity)
	t.mix(p.denseM)
	for round := 1; round < p.fullRounds/2; round++ {
		t.substitute(0, p.width)
		if round < p.fullRounds/2-1 {
			t.mix(p.denseM)
		} else {
			t.mix(p.denseP)
		}
	}
	for round := range p.partialRounds {
		t.substitute(0, 1)
		t.mixSparse(round)
	}
	for range p.fullRounds/2 - 1 {
		t.substitute(0, p.width)
		t.mix(p.denseM)
	}
	t.substitute(0, p.width)
	dot(&t.next[0], &t.now[0], &p.denseM[p.width], p.width)
	for k := range dst {
		dst[k][len(dst[k])-1] = join(t.next[0].lane(k))
	}
}

// substitute applies the S-box to n elements from first on.
func (t *tracer) substitute(first, n int) {
	trace(&t.dst, &t.now[first], &t.constants[0], &t.work, t.offset, n)
	t.constants = t.constants[n:]
	t.offset += n * traceValues * elementBytes
}

func (t *tracer) mix(columns []limbs) {
	mix(t.next, t.now, columns, t.width)
	t.now, t.next = t.next, t.now
}

func (t *tracer) mixSparse(round int) {
	dot(&t.next[0], &t.now[0], &t.what[round*t.width], t.width)
	mulAdd(&t.now[0], &t.v[round*(t.width-1)], t.width-1)
	t.now[0] = t.next[0]
	if round%renewEvery == renewEvery-1 {
		scale(&t.now[1], &t.one, t.width-1)
	}
}
