package generate

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/internal/workers"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// Circuit is what the generator needs of a circuit; circuit.Circuit has it.
type Circuit interface {
	ID() string
	ParamsName() string
	Sections() []r1cs.Position
	Describe(section int, rows r1cs.RowSink)
	SharedAux() int
}

// evaluation is a circuit's constraint system at tau, as the exponents of the parameter file.
type evaluation struct {
	counts  srs.Counts
	domain  *domain
	scalars Scalars
	ic      []fr.Element
	heads   [2][]fr.Element // u and v of the inputs and shared auxiliaries that have them
	headL   []fr.Element    // l of the shared auxiliaries
	parts   []part          // the other auxiliaries, by section
}

// part is what one section contributes; u and v hold only the elements that are not zero.
type part struct{ l, u, v *vector }

// free gives back all memory outside the heap.
func (e *evaluation) free() {
	for _, p := range e.parts {
		p.l.free()
		p.u.free()
		p.v.free()
	}
}

// walker is one goroutine of an evaluation.
type walker struct {
	inputs, shared *columns
	v              *vector // room for the v sums of one section
}

// evaluate walks the circuit.
func evaluate(ctx context.Context, c Circuit, s Scalars, o Options) (*evaluation, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	sections := c.Sections()
	totals := sections[len(sections)-1]
	d, err := newDomain(totals.DomainBits(), s.Tau)
	if err != nil {
		return nil, err
	}
	e := &evaluation{domain: d, scalars: s, parts: make([]part, len(sections)-1)}
	walkers, err := e.walk(ctx, c, o)
	if err == nil {
		err = e.finishShared(walkers, totals)
	}
	if err != nil {
		e.free()
		return nil, err
	}
	return e, nil
}

// walk runs all sections on all workers.
func (e *evaluation) walk(ctx context.Context, c Circuit, o Options) ([]*walker, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sections := c.Sections()
	totals := sections[len(sections)-1]
	var done atomic.Int64
	tick := func() bool {
		o.progress(StageRows, done.Add(tickRows), int64(totals.Rows))
		return ctx.Err() == nil
	}
	walkers := make([]*walker, walkerCount(o, sections))
	for i := range walkers {
		walkers[i] = &walker{inputs: newColumns(totals.Inputs), shared: newColumns(c.SharedAux())}
	}
	err := workers.Each(len(walkers), len(e.parts), func(i, section int) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		err := e.walkSection(ctx, c, walkers[i], section, tick)
		if err != nil {
			cancel(err) // ends the sections that are being walked
		}
		return err
	})
	for _, w := range walkers {
		w.v.free()
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return nil, fmt.Errorf("walk circuit %s: %w", c.ID(), err)
	}
	o.progress(StageRows, int64(totals.Rows), int64(totals.Rows))
	return walkers, nil
}

// roomBytesMax bounds what all walkers together have for v sums, as long as there is more than one.
const roomBytesMax = 2 << 30

// walkerCount is the number of goroutines for a circuit's sections.
func walkerCount(o Options, sections []r1cs.Position) int {
	largest := 1
	for i := range len(sections) - 1 {
		largest = max(largest, sections[i+1].Aux-sections[i].Aux)
	}
	return max(1, min(o.workers(), len(sections)-1, roomBytesMax/(largest*fr.Bytes)))
}

func (e *evaluation) walkSection(
	ctx context.Context, c Circuit, w *walker, section int, tick func() bool,
) error {
	start, end := c.Sections()[section], c.Sections()[section+1]
	first := max(c.SharedAux(), start.Aux)
	n := max(first, end.Aux) - first
	p := &e.parts[section]
	if err := w.makeRoom(p, n); err != nil {
		return err
	}
	words := (n + 63) / 64
	private := &columns{
		first: first, u: p.u.elements, v: w.v.elements[:n], w: p.l.elements,
		usedA: make([]uint64, words), usedB: make([]uint64, words),
	}
	r := &rows{
		lagrange: e.domain.lagrangeFrom(start.Rows), inputs: w.inputs, shared: w.shared, private: private, tick: tick,
	}
	c.Describe(section, r)
	if ctx.Err() != nil {
		return nil // the cause is known
	}
	if r.count != end.Rows-start.Rows {
		return fmt.Errorf("section %d has %d rows, %d announced: %w", section, r.count, end.Rows-start.Rows, ErrCircuit)
	}
	return p.finish(private, &e.scalars)
}

// makeRoom maps what a section of n auxiliaries needs and clears the room for v.
func (w *walker) makeRoom(p *part, n int) error {
	var err error
	if w.v == nil || len(w.v.elements) < n {
		w.v.free()
		if w.v, err = newVector(n); err != nil {
			return err
		}
	}
	clear(w.v.elements)
	if p.l, err = newVector(n); err != nil {
		return err
	}
	p.u, err = newVector(n)
	return err
}

// finish keeps l, u and v of a section; v, which few auxiliaries have, moves to a vector of its own length.
func (p *part) finish(c *columns, s *Scalars) error {
	var inverse fr.Element
	inverse.Inverse(&s.Delta)
	nu, nv, err := c.finish(s, &inverse, 'A')
	if err != nil {
		return err
	}
	p.u.elements = p.u.elements[:nu]
	if p.v, err = newVector(nv); err != nil {
		return err
	}
	copy(p.v.elements, c.v[:nv])
	return nil
}

// finishShared adds the appended rows `I_i · 0 = 0`, joins the workers' sums and determines the counts.
func (e *evaluation) finishShared(walkers []*walker, totals r1cs.Position) error {
	w := walkers[0]
	for _, other := range walkers[1:] {
		w.inputs.merge(other.inputs)
		w.shared.merge(other.shared)
	}
	appended := &rows{
		lagrange: e.domain.lagrangeFrom(totals.Rows), inputs: w.inputs, shared: w.shared, private: newColumns(0),
		tick: func() bool { return true },
	}
	r1cs.InputRows(appended, totals.Inputs)
	var gamma, delta fr.Element
	gamma.Inverse(&e.scalars.Gamma)
	delta.Inverse(&e.scalars.Delta)
	inputsU, inputsV, err := w.inputs.finish(&e.scalars, &gamma, 'I')
	if err != nil {
		return err
	}
	auxU, auxV, err := w.shared.finish(&e.scalars, &delta, 'A')
	if err != nil {
		return err
	}
	e.ic, e.headL = w.inputs.w, w.shared.w
	e.heads[0] = append(w.inputs.u[:inputsU], w.shared.u[:auxU]...)
	e.heads[1] = append(w.inputs.v[:inputsV], w.shared.v[:auxV]...)
	e.counts = srs.Counts{IC: len(e.ic), H: 1<<e.domain.bits - 1, L: totals.Aux, A: len(e.heads[0]), B: len(e.heads[1])}
	for _, p := range e.parts {
		e.counts.A += len(p.u.elements)
		e.counts.B += len(p.v.elements)
	}
	if inputsU != totals.Inputs {
		return fmt.Errorf("%d of %d inputs occur in A: %w", inputsU, totals.Inputs, ErrCircuit)
	}
	return nil
}
