package ntt

import (
	"errors"
	"fmt"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/internal/workers"
)

// Kind is the domain of a transform.
type Kind bool

// The two domains of m points: the m-th roots of 1 and of -1. Value p, with the bits of p reversed to q, is that at
// w^q or zeta w^q, where w is the root of order m and zeta that of order 2m (spec c2-formats.md 3.1).
const (
	Cyclic     Kind = false
	Negacyclic Kind = true
)

// Bounds of a domain, binary logarithms.
const (
	BitsMin = 1
	BitsMax = 31
)

// ErrBits is the error for sizes outside the bounds.
var ErrBits = errors.New("unsupported domain size")

// Domain transforms vectors of one length. It may be used from several goroutines; the work of a call is spread over
// its workers, which end before the call returns.
type Domain struct {
	bits, workers int
	passes        []pass // from coefficients to values
	roots         *roots
	base          [2][]fr.Element // T[i] and their inverses, as many as a pass needs
	kernels       sync.Pool
}

// pass is a run of stages.
type pass struct{ depth, stages int }

const (
	// passStagesMax keeps a tile in the second level of cache.
	passStagesMax = 9
	// vectorBitsMin is the smallest domain that the vector kernel takes.
	vectorBitsMin = 8
	lanes         = 8
)

// New prepares transforms of 2^bits elements. The error wraps ErrBits.
func New(bits, workers int) (*Domain, error) { return newDomain(bits, workers, false) }

func newDomain(bits, workers int, portable bool) (*Domain, error) {
	if bits < BitsMin || bits > BitsMax {
		return nil, fmt.Errorf("prepare transforms of 2^%d elements: %w: 2^%d to 2^%d", bits, ErrBits, BitsMin, BitsMax)
	}
	d := &Domain{bits: bits, workers: max(1, workers), roots: rootsTable()}
	count := (bits + passStagesMax - 1) / passStagesMax
	if bits >= vectorBitsMin {
		count = max(2, count) // the pass over rows needs eight nodes
	}
	for i, depth := 0, 0; i < count; i++ {
		stages := (bits - depth + count - i - 1) / (count - i)
		d.passes = append(d.passes, pass{depth, stages})
		depth += stages
	}
	for i := range d.base {
		d.base[i] = make([]fr.Element, 1<<passStagesMax)
		for n := range d.base[i] {
			d.base[i][n] = d.roots.twiddle(uint32(n), i == 1)
		}
	}
	vector := !portable && bits >= vectorBitsMin && vectorSupported()
	d.kernels.New = func() any {
		if vector {
			return newVectorKernel(d)
		}
		return &portableKernel{domain: d}
	}
	return d, nil
}

// Size is the number of elements.
func (d *Domain) Size() int { return 1 << d.bits }

// kernel works on the tiles of a pass. It belongs to one goroutine.
type kernel interface {
	// prepare makes the twiddles of the node n at the pass's depth (see the package documentation) for columns.
	prepare(p pass, n uint32, inverse bool)
	// columns takes width neighbouring columns from the first of x, a node's elements, through the stages.
	columns(p pass, x fr.Vector, first, width int, inverse bool)
	// rows takes neighbouring nodes from the n-th on, whose elements are x, through the pass's stages, which are the
	// last.
	rows(p pass, x fr.Vector, n uint32, inverse bool)
}

// Evaluate turns coefficients in natural order into values in bit-reversed order. It panics when the length is wrong.
func (d *Domain) Evaluate(x fr.Vector, k Kind) { d.transform(x, k, false) }

// Interpolate turns values in bit-reversed order into Size times the coefficients in natural order. It panics when the
// length is wrong.
func (d *Domain) Interpolate(x fr.Vector, k Kind) { d.transform(x, k, true) }

func (d *Domain) transform(x fr.Vector, k Kind, inverse bool) {
	if len(x) != d.Size() {
		panic(fmt.Sprintf("ntt: %d elements in a domain of %d", len(x), d.Size()))
	}
	for i := range d.passes {
		if inverse {
			i = len(d.passes) - 1 - i
		}
		p := d.passes[i]
		if p.depth+p.stages == d.bits {
			d.rowPass(p, x, k, inverse)
		} else {
			d.columnPass(p, x, k, inverse)
		}
	}
}

// node is the number of the j-th node at a depth.
func node(k Kind, depth, j int) uint32 {
	if k == Negacyclic {
		j += 1 << depth
	}
	return uint32(j)
}

// taskColumns bounds the columns that a worker takes at once.
const taskColumns = 128

func (d *Domain) columnPass(p pass, x fr.Vector, k Kind, inverse bool) {
	size := len(x) >> p.depth
	columns := size >> p.stages
	width := min(columns, taskColumns)
	perNode := columns / width
	d.parallel(perNode<<p.depth, func(kern kernel, task int) {
		j := task / perNode
		kern.prepare(p, node(k, p.depth, j), inverse)
		kern.columns(p, x[j*size:(j+1)*size], task%perNode*width, width, inverse)
	})
}

func (d *Domain) rowPass(p pass, x fr.Vector, k Kind, inverse bool) {
	together := min(lanes, 1<<p.depth)
	size := together << p.stages
	d.parallel(len(x)/size, func(kern kernel, task int) {
		kern.rows(p, x[task*size:(task+1)*size], node(k, p.depth, task*together), inverse)
	})
}

// parallel calls run for all tasks from all workers, each with a kernel of its own.
func (d *Domain) parallel(tasks int, run func(k kernel, task int)) {
	kernels := make([]kernel, max(1, min(d.workers, tasks)))
	for i := range kernels {
		kernels[i] = d.kernels.Get().(kernel)
		defer d.kernels.Put(kernels[i])
	}
	_ = workers.Each(len(kernels), tasks, func(w, i int) error { // no task fails
		run(kernels[w], i)
		return nil
	})
}
