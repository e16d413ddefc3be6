package cuda_test

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc"
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/cuda"
	"github.com/proofrack/proofrack/cuda/internal/entry"
)

// made is a made-up circuit with points of known logarithms, and one partition of it.
type made struct {
	shape   cuda.Shape
	points  cuda.Points
	segment []byte
	layout  cuda.Layout
	want    cuda.Sums
}

// plane is a bitmap of codes or marks.
type plane []uint64

func newPlane(n int) plane { return make(plane, (n+63)/64) }

func (p plane) set(i int)      { p[i/64] |= 1 << (i % 64) }
func (p plane) has(i int) bool { return p[i/64]>>(i%64)&1 == 1 }

func (p plane) ones() int {
	n := 0
	for _, w := range p {
		n += bits.OnesCount64(w)
	}
	return n
}

// vector is a vector of a segment: codes, marks, full elements, and the values that they stand for.
type vector struct {
	low, high, full plane
	list, values    []fr.Element
}

// makeVector has codes 0 … codes−1 and full elements where marked.
func makeVector(random *rand.Rand, n, codes int, marked func(i int) bool) *vector {
	v := &vector{low: newPlane(n), high: newPlane(n), full: newPlane(n), values: make([]fr.Element, n)}
	for i := range n {
		if marked(i) {
			v.values[i] = sampleScalars(random, 1)[0]
			v.full.set(i)
			v.list = append(v.list, v.values[i])
			continue
		}
		code := random.IntN(codes)
		v.values[i].SetInt64([]int64{0, 1, 2, -1}[code])
		if code&1 == 1 {
			v.low.set(i)
		}
		if code&2 == 2 {
			v.high.set(i)
		}
	}
	return v
}

// segment puts the parts behind each other.
type segment struct{ bytes []byte }

func place[T any](s *segment, items []T) int {
	for len(s.bytes)%4096 != 0 || len(s.bytes) == 0 {
		s.bytes = append(s.bytes, 0xee) // what is between the parts is nobody's
	}
	at := len(s.bytes)
	if len(items) > 0 {
		size := len(items) * int(unsafe.Sizeof(items[0]))
		s.bytes = append(s.bytes, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(items))), size)...)
	}
	return at
}

// makeProof makes a circuit and a partition of it that satisfies nothing: the quotient is of a, b and their product.
func makeProof(t *testing.T, seed uint64, rows, inputs, aux int) *made {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	every := func(n int) func(int) bool { return func(i int) bool { return i%n == n/2 } }
	total := rows + inputs
	a := makeVector(random, total, 4, func(i int) bool { return i >= rows || i%5 == 2 })
	b := makeVector(random, total, 2, func(i int) bool { return i < rows && i%7 == 3 })
	for i := rows; i < total; i++ { // b of the appended input rows is zero
		b.low[i/64] &^= 1 << (i % 64)
		b.values[i] = fr.Element{}
	}
	x := makeVector(random, aux, 2, every(6))
	in := sampleScalars(random, inputs)
	in[0].SetOne()

	m := &made{}
	aAux, bAux, bInputs := newPlane(aux), newPlane(aux), newPlane(inputs)
	for i := range aux {
		if random.IntN(3) > 0 {
			aAux.set(i)
		}
		if random.IntN(3) > 0 {
			bAux.set(i)
		}
	}
	bInputs.set(0)
	n := bits.Len(uint(total - 1)) // of the domain
	m.shape = cuda.Shape{
		Rows: rows, Inputs: inputs, Aux: aux, FullA: len(a.list) - inputs, FullB: len(b.list), FullAux: len(x.list),
		H: 1<<n - 1, L: aux, A: inputs + aAux.ones(), B: bInputs.ones() + bAux.ones(),
	}
	m.points.AAux, m.points.BAux, m.points.BInputs = aAux, bAux, bInputs
	c := make(fr.Vector, total)
	c.Mul(a.values, b.values)
	m.fill(t, libraryQuotient(t, &evaluations{a: a.values, b: b.values, c: c}, n), in, x)

	s := &segment{}
	m.layout = cuda.Layout{
		Inputs: place(s, in), A0: place(s, a.low), A1: place(s, a.high), B0: place(s, b.low), AFull: place(s, a.full),
		BFull: place(s, b.full), X0: place(s, x.low), XFull: place(s, x.full), RankA: place(s, rankIndex(a.full)),
		RankB: place(s, rankIndex(b.full)), RankX: place(s, rankIndex(x.full)), ListA: place(s, a.list),
		ListB: place(s, b.list), ListX: place(s, x.list),
	}
	m.segment = s.bytes
	return m
}

// fill makes the lists of points and what the sums over them are.
func (m *made) fill(t *testing.T, h, in []fr.Element, x *vector) {
	t.Helper()
	g1, g2 := samplePoints(max(m.shape.H, m.shape.L, m.shape.A, m.shape.B) + 4)
	m.points.H, m.points.L = g1[:m.shape.H], g1[1:][:m.shape.L]
	m.points.A, m.points.B1, m.points.B2 = g1[2:][:m.shape.A], g1[3:][:m.shape.B], g2[:m.shape.B]
	var a, b []fr.Element
	a = append(a, in...)
	for i := range in {
		if plane(m.points.BInputs).has(i) {
			b = append(b, in[i])
		}
	}
	for i := range x.values {
		if plane(m.points.AAux).has(i) {
			a = append(a, x.values[i])
		}
		if plane(m.points.BAux).has(i) {
			b = append(b, x.values[i])
		}
	}
	sum := func(to *bls12381.G1Affine, points []bls12381.G1Affine, scalars []fr.Element) {
		if _, err := to.MultiExp(points, scalars, ecc.MultiExpConfig{NbTasks: 1}); err != nil {
			t.Fatal(err)
		}
	}
	var l bls12381.G1Affine
	sum(&m.want.C, m.points.H, h[:m.shape.H])
	sum(&l, m.points.L, x.values)
	m.want.C.Add(&m.want.C, &l)
	sum(&m.want.A, m.points.A, a)
	sum(&m.want.B1, m.points.B1, b)
	if _, err := m.want.B2.MultiExp(m.points.B2, b, ecc.MultiExpConfig{NbTasks: 1}); err != nil {
		t.Fatal(err)
	}
}

func openLibrary(t *testing.T) *cuda.Library {
	t.Helper()
	library, err := cuda.Load(entry.Path())
	if err != nil {
		t.Fatalf("%v (`make cuda-host` makes it)", err)
	}
	return library
}

// open opens the host's device.
func open(t *testing.T, o cuda.Options) *cuda.Device {
	t.Helper()
	o.Threads = 2
	device, err := openLibrary(t).Open("host", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, device) })
	return device
}

func closing(t *testing.T, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func load(t *testing.T, device *cuda.Device, m *made, pending int) *cuda.Params {
	t.Helper()
	params, err := device.Load(m.shape, m.points, pending)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, params) })
	return params
}

func prove(t *testing.T, params *cuda.Params, m *made) cuda.Timings {
	t.Helper()
	p, err := params.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, p)
	if err := p.Start(m.segment, m.layout); err != nil {
		t.Fatal(err)
	}
	got, err := p.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.want, got); diff != "" {
		t.Errorf("sums (-want +got):\n%s", diff)
	}
	timings, err := p.Timings()
	if err != nil {
		t.Fatal(err)
	}
	return timings
}

// madeCircuits have domains that are full and that are not, planes that end within a word, and one more block of ranks.
func madeCircuits(t *testing.T) []*made {
	t.Helper()
	return []*made{
		makeProof(t, 1, 1, 1, 1), makeProof(t, 2, 253, 3, 200), makeProof(t, 3, 254, 3, 64), makeProof(t, 4, 500, 2, 5000),
	}
}

func TestProofHasTheSumsOfItsLists(t *testing.T) {
	t.Parallel()
	device := open(t, cuda.Options{})
	for i, m := range madeCircuits(t) {
		t.Run(strconv.Itoa(i), func(t *testing.T) { prove(t, load(t, device, m, 1), m) })
	}
}

// With an arena that does not hold the points they are streamed, with the same sums.
func TestProofWithStreamedPointsHasTheSameSums(t *testing.T) {
	t.Parallel()
	m := makeProof(t, 5, 500, 2, 9000)
	library := openLibrary(t)
	roomy, err := library.Plan(m.shape, 0, 1)
	if err != nil || !roomy.Resident {
		t.Fatalf("plan without a limit: %+v, %v", roomy, err)
	}
	tight, err := library.Plan(m.shape, roomy.PeakBytes-1, 1)
	if err != nil || tight.Resident {
		t.Fatalf("plan with a byte less: %+v, %v", tight, err)
	}
	for name, pinned := range map[string]uint64{"through pinned memory": 0, "pinned themselves": 1 << 28} {
		t.Run(name, func(t *testing.T) {
			params := load(t, open(t, cuda.Options{ArenaBytes: tight.PeakBytes, PinnedBytes: pinned}), m, 1)
			plan, err := params.Plan()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tight, plan); diff != "" {
				t.Errorf("plan that was used (-before +after):\n%s", diff)
			}
			timings := prove(t, params, m)
			want := uint64(96*(m.shape.H+m.shape.L+m.shape.A+m.shape.B) + 192*m.shape.B)
			if timings.StreamedBytes != want || timings.PeakBytes != tight.PeakBytes {
				t.Errorf("streamed %d bytes, want %d; peak is %d, want %d",
					timings.StreamedBytes, want, timings.PeakBytes, tight.PeakBytes)
			}
		})
	}
}

// What is used at most is what was planned, and a byte less is refused with both numbers.
func TestPeakIsWhatWasPlanned(t *testing.T) {
	t.Parallel()
	m := makeProof(t, 6, 100, 1, 300)
	library := openLibrary(t)
	var least uint64
	if _, err := library.Plan(m.shape, 1, 1); !errors.Is(err, cuda.ErrMemory) {
		t.Fatalf("plan in one byte: %v", err)
	}
	for low, high := uint64(1), uint64(1)<<30; low < high; least = low { // the least that works
		if middle := (low + high) / 2; planned(library, m, middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	device := open(t, cuda.Options{ArenaBytes: least})
	prove(t, load(t, device, m, 1), m)
	memory, err := device.Memory()
	if err != nil || memory.ArenaPeak != least {
		t.Errorf("peak is %d (%v), the plan says %d", memory.ArenaPeak, err, least)
	}
	small := open(t, cuda.Options{ArenaBytes: least - 1})
	if _, err := small.Load(m.shape, m.points, 1); !errors.Is(err, cuda.ErrMemory) {
		t.Errorf("parameters in a byte less: %v", err)
	}
	if memory, err := small.Memory(); err != nil || memory.ArenaUsed != 0 {
		t.Errorf("after a refusal %d bytes are used (%v)", memory.ArenaUsed, err)
	}
}

func planned(library *cuda.Library, m *made, arena uint64) bool {
	_, err := library.Plan(m.shape, arena, 1)
	return err == nil
}

// Two proofs are pending at once, from several threads, and a third is refused until one ends.
func TestTwoProofsArePendingAtOnce(t *testing.T) {
	t.Parallel()
	m := makeProof(t, 7, 60, 2, 130)
	params := load(t, open(t, cuda.Options{}), m, 2)
	var pending [2]*cuda.Pending
	for i := range pending {
		var err error
		if pending[i], err = params.Begin(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := params.Begin(); !errors.Is(err, cuda.ErrBusy) {
		t.Errorf("third proof: %v", err)
	}
	var group sync.WaitGroup
	for _, p := range pending {
		group.Go(func() {
			defer closing(t, p)
			if err := p.Start(m.segment, m.layout); err != nil {
				t.Error(err)
				return
			}
			if got, err := p.Finish(); err != nil || got != m.want {
				t.Errorf("sums are %v, want %v (%v)", got, m.want, err)
			}
		})
	}
	group.Wait()
	prove(t, params, m)
}

func TestAbortedProofEndsAndGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	m := makeProof(t, 8, 30, 1, 70)
	params := load(t, open(t, cuda.Options{}), m, 1)
	for _, started := range []bool{false, true} {
		p, err := params.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if started {
			if err := p.Start(m.segment, m.layout); err != nil {
				t.Fatal(err)
			}
			p.Abort()
			_, err = p.Finish()
		} else {
			p.Abort()
			err = p.Start(m.segment, m.layout)
		}
		if !errors.Is(err, cuda.ErrAborted) {
			t.Errorf("aborted proof: %v", err)
		}
		closing(t, p)
	}
	prove(t, params, m)
}

// Parts outside the segment, and counts of another circuit, are refused before anything is read.
func TestForeignLayoutsAndCountsAreRefused(t *testing.T) {
	t.Parallel()
	m := makeProof(t, 9, 30, 1, 70)
	device := open(t, cuda.Options{})
	params := load(t, device, m, 1)
	for name, change := range map[string]func(l *cuda.Layout){
		"behind the end": func(l *cuda.Layout) { l.ListX = len(m.segment) },
		"far behind":     func(l *cuda.Layout) { l.A0 = 1 << 60 },
		"not aligned":    func(l *cuda.Layout) { l.B0++ },
	} {
		layout := m.layout
		change(&layout)
		p, err := params.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(m.segment, layout); !isArgument(err) {
			t.Errorf("part %s: %v", name, err)
		}
		closing(t, p)
	}
	for name, change := range map[string]func(s *cuda.Shape, p *cuda.Points){
		"h":       func(s *cuda.Shape, p *cuda.Points) { s.H, p.H = s.H-1, p.H[1:] },
		"a":       func(s *cuda.Shape, p *cuda.Points) { s.A, p.A = s.A-1, p.A[1:] },
		"full":    func(s *cuda.Shape, _ *cuda.Points) { s.FullAux = s.Aux + 1 },
		"density": func(_ *cuda.Shape, p *cuda.Points) { p.BAux = make([]uint64, len(p.BAux)) },
	} {
		shape, points := m.shape, m.points
		change(&shape, &points)
		if _, err := device.Load(shape, points, 1); !isArgument(err) {
			t.Errorf("circuit with other %s: %v", name, err)
		}
	}
}

func isArgument(err error) bool {
	var e *cuda.Error
	return errors.As(err, &e) && e.Code == cuda.CodeArgument
}
