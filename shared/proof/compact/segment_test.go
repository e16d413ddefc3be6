package compact_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/r1cs/r1cstest"
)

func newTrace() *r1cstest.Trace { return r1cstest.New() }

// dirtyMemory is memory for a layout that held something else before.
func dirtyMemory(l *compact.Layout) []byte {
	memory := l.Memory()
	for i := range memory {
		memory[i] = byte(rand.Uint32())
	}
	return memory
}

func synthesize(t r1cstest.TB, s *scripted, workers int) (*compact.Segment, []byte) {
	t.Helper()
	layout, err := compact.LayoutOf(s)
	if err != nil {
		t.Fatal(err)
	}
	memory := dirtyMemory(layout)
	job := compact.Job{Circuit: s, Witness: s, Partition: 5, Workers: workers}
	segment, err := job.Synthesize(context.Background(), memory)
	if err != nil {
		t.Fatal(err)
	}
	return segment, memory
}

func TestSegmentEqualsTheDenseVectors(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := drawScript(t)
		want := denseOf(script)
		written, memory := synthesize(t, script, rapid.IntRange(0, 9).Draw(t, "workers"))
		read, err := compact.Open(memory)
		if err != nil {
			t.Fatal(err)
		}
		if err := read.Verify(rapid.IntRange(0, 3).Draw(t, "verifiers")); err != nil {
			t.Fatal(err)
		}
		if read.CircuitID() != "scripted" || read.Partition() != 5 || read.Counts() != written.Counts() {
			t.Fatalf("opened %s/%d %+v", read.CircuitID(), read.Partition(), read.Counts())
		}
		for _, s := range []*compact.Segment{written, read} {
			compareWhole(t, s, want)
		}
		compareRanges(t, read, want)
	})
}

func compareWhole(t *rapid.T, s *compact.Segment, want *dense) {
	if diff := cmp.Diff(want.inputs, s.Inputs()); diff != "" {
		t.Fatalf("inputs: want (-), got (+):\n%s", diff)
	}
	compareRange(t, s, want, 0, len(want.a), 0, len(want.aux))
	var full []fr.Element
	var ones, mask []uint64
	for i, e := range want.aux {
		if i%64 == 0 {
			ones, mask = append(ones, 0), append(mask, 0)
		}
		switch {
		case want.auxFull[i]:
			full = append(full, e)
			mask[i/64] |= 1 << (i % 64)
		case e.IsOne():
			ones[i/64] |= 1 << (i % 64)
		}
	}
	if !slices.Equal(full, s.AuxFull()) || !slices.Equal(ones, s.AuxOnes()) || !slices.Equal(mask, s.AuxFullMask()) {
		t.Fatal("classes of auxiliaries differ")
	}
}

func compareRanges(t *rapid.T, s *compact.Segment, want *dense) {
	for range 8 {
		row, rows := drawRange(t, len(want.a))
		aux, auxiliaries := drawRange(t, len(want.aux))
		compareRange(t, s, want, row, rows, aux, auxiliaries)
		before := 0
		for _, full := range want.auxFull[:aux] {
			if full {
				before++
			}
		}
		if got := s.AuxFullBefore(aux); got != before {
			t.Fatalf("full auxiliaries before %d: got %d, want %d", aux, got, before)
		}
		if aux < len(want.aux) {
			if got := s.Value(r1cs.AuxVar(aux)); got != want.aux[aux] {
				t.Fatalf("value of auxiliary %d: got %s, want %s", aux, got.String(), want.aux[aux].String())
			}
		}
	}
	for i, e := range want.inputs {
		if got := s.Value(r1cs.InputVar(i)); got != e {
			t.Fatalf("value of input %d: got %s, want %s", i, got.String(), e.String())
		}
	}
}

// drawRange draws a range within 0…n−1, often one that ends just before, at or behind a word.
func drawRange(t *rapid.T, n int) (from, count int) {
	from = rapid.IntRange(0, n).Draw(t, "from")
	if rapid.Bool().Draw(t, "at a word") {
		from &^= 63
	}
	count = rapid.OneOf(rapid.IntRange(0, 200), rapid.SampledFrom([]int{1, 63, 64, 65})).Draw(t, "count")
	return from, min(count, n-from)
}

func compareRange(t r1cstest.TB, s *compact.Segment, want *dense, row, rows, aux, auxiliaries int) {
	for name, v := range map[string]struct {
		expand func(int, []fr.Element)
		want   []fr.Element
		from   int
	}{
		"a": {s.ExpandA, want.a[row : row+rows], row}, "b": {s.ExpandB, want.b[row : row+rows], row},
		"c": {s.ExpandC, want.c[row : row+rows], row}, "aux": {s.ExpandAux, want.aux[aux : aux+auxiliaries], aux},
	} {
		got := make([]fr.Element, len(v.want))
		for i := range got {
			got[i].SetUint64(99) // what dst held before must not matter
		}
		v.expand(v.from, got)
		for i := range got {
			if got[i] != v.want[i] {
				t.Fatalf("%s of position %d: got %s, want %s", name, v.from+i, got[i].String(), v.want[i].String())
			}
		}
	}
}

func TestBytesDependOnTheValuesAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := drawScript(t)
		whole := &scripted{id: script.id, sections: [][]handover{slices.Concat(script.sections...)}}
		_, one := synthesize(t, whole, 1)
		_, many := synthesize(t, script, 9)
		if !slices.Equal(one, many) {
			t.Fatal("cut into sections and written by several goroutines, the segment has other bytes")
		}
	})
}

// mixedScript has every kind of value on both sides of block edges.
func mixedScript(rows int) *scripted {
	random := rand.New(rand.NewPCG(1, uint64(rows)))
	element := func() fr.Element { e := r1cs.Element(random.Uint64()); e.Square(&e).Square(&e); return e }
	s := &scripted{id: "mixed", sections: make([][]handover, 3)}
	for i := range rows / 64 {
		section := &s.sections[i*3*64/rows]
		*section = append(*section,
			handover{kind: "rows", n: 61, a0: random.Uint64() >> 3, a1: random.Uint64() >> 3, b: random.Uint64() >> 3},
			handover{kind: "bits", n: 57, b: random.Uint64() >> 7},
			handover{kind: "full row", x: element(), y: element()},
			handover{kind: "full aux", x: element()},
			handover{kind: "full-bit row", x: element(), b: uint64(i & 1)})
	}
	s.sections[1] = append(s.sections[1], handover{kind: "input", x: element()}, handover{kind: "input", x: element()})
	return s
}

func TestRangesThatEndNearAWord(t *testing.T) {
	t.Parallel()
	script := mixedScript(12800)
	want := denseOf(script)
	s, _ := synthesize(t, script, 2)
	for from := 0; from+70 < len(want.aux); from++ {
		for to := from&^63 + 62; to <= from&^63+66; to++ {
			if from%64 < 2 || from%64 > 61 {
				n := max(0, to-from)
				compareRange(t, s, want, from, n, from, n)
			}
		}
	}
}

func TestReadsOutsideAVectorPanic(t *testing.T) {
	t.Parallel()
	s, _ := synthesize(t, mixedScript(640), 2)
	n := s.Counts()
	one := make([]fr.Element, 1)
	for name, read := range map[string]func(){
		"a behind the input rows": func() { s.ExpandA(n.RowsTotal(), one) },
		"b behind the input rows": func() { s.ExpandB(n.RowsTotal(), one) },
		"c behind the input rows": func() { s.ExpandC(n.RowsTotal(), one) },
		"aux behind the last":     func() { s.ExpandAux(n.Aux, one) },
		"negative":                func() { s.ExpandA(-1, one) },
		"too many":                func() { s.ExpandAux(1, make([]fr.Element, n.Aux)) },
		"input that is not there": func() { s.Value(r1cs.InputVar(n.Inputs)) },
		"aux that is not there":   func() { s.Value(r1cs.AuxVar(n.Aux)) },
	} {
		if !panics(read) {
			t.Errorf("%s: no panic", name)
		}
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestUnusableMemoryIsRefused(t *testing.T) {
	t.Parallel()
	s := mixedScript(640)
	layout, err := compact.LayoutOf(s)
	if err != nil {
		t.Fatal(err)
	}
	job := compact.Job{Circuit: s, Witness: s}
	larger := make([]byte, layout.Bytes()+8)
	for name, memory := range map[string][]byte{
		"none": nil, "a byte too few": layout.Memory()[:layout.Bytes()-1], "odd address": larger[1:],
	} {
		if _, err := job.Synthesize(context.Background(), memory); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := job.Synthesize(context.Background(), larger); err != nil {
		t.Errorf("larger memory: %v", err)
	}
	for _, id := range []string{"", fmt.Sprintf("%065d", 0)} {
		job.Circuit = &scripted{id: id, sections: s.sections}
		if _, err := job.Synthesize(context.Background(), layout.Memory()); err == nil {
			t.Errorf("circuit id %q: accepted", id)
		}
	}
}

func TestACancelledSynthesisLeavesTheSegmentUnsealed(t *testing.T) {
	t.Parallel()
	for _, when := range []int{0, 1, 300} {
		s := mixedScript(6400)
		_, memory := synthesize(t, s, 1) // sealed once before
		if _, err := compact.Open(memory); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		if when == 0 {
			cancel()
		}
		handed := 0
		s.pause = func() {
			if handed++; handed == when {
				cancel()
			}
		}
		job := compact.Job{Circuit: s, Witness: s, Workers: 1}
		if _, err := job.Synthesize(ctx, memory); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at handover %d: got %v, want context.Canceled", when, err)
		}
		if last := slices.Concat(s.sections...); handed == len(last) {
			t.Errorf("cancelled at handover %d: all %d were made", when, handed)
		}
		if _, err := compact.Open(memory); !errors.Is(err, compact.ErrCorrupt) {
			t.Errorf("open after cancelling at handover %d: got %v, want ErrCorrupt", when, err)
		}
		cancel()
	}
}

func TestLayoutRefusesCountsThatContradictEachOther(t *testing.T) {
	t.Parallel()
	for name, counts := range map[string]r1cs.Position{
		"nothing":             {},
		"negative":            {Inputs: 1, Rows: -1},
		"beyond 31 bits":      {Inputs: 1, Rows: 1 << 31},
		"more full a":         {Inputs: 1, Rows: 1, FullA: 2},
		"more full b":         {Inputs: 1, Rows: 1, FullB: 2},
		"more full auxiliary": {Inputs: 1, Aux: 1, FullAux: 2},
	} {
		if _, err := compact.NewLayout(counts); !errors.Is(err, compact.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
	}
}

func TestVectorBytesAddUpToLessThanTheSegment(t *testing.T) {
	t.Parallel()
	counts := r1cs.Position{Rows: 1000, Inputs: 4, Aux: 500, FullA: 30, FullB: 20, FullAux: 10}
	l, err := compact.NewLayout(counts)
	if err != nil {
		t.Fatal(err)
	}
	a, b, aux := l.VectorBytes()
	words, auxWords := 16*8, 8*8
	want := [3]int{3*words + 4 + 34*32, 2*words + 4 + 20*32, 2*auxWords + 4 + 10*32}
	if got := [3]int{a, b, aux}; got != want {
		t.Errorf("got %d, want %d", got, want)
	}
	if l.Bytes()%4096 != 0 || l.Bytes() < a+b+aux+4096 || l.Counts() != counts {
		t.Errorf("segment of %d bytes for %+v", l.Bytes(), l.Counts())
	}
}
