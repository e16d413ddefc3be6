package r1cs_test

import (
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/r1cs/r1cstest"
)

// patternInputs are two variables with the values of a walk.
func patternInputs(x, y fr.Element) [2]r1cs.Num {
	return [2]r1cs.Num{r1cs.NumOf(r1cs.AuxVar(0), x), r1cs.NumOf(r1cs.AuxVar(1), y)}
}

// patternWalk uses every call that a pattern may hold.
func patternWalk(s *r1cs.System, in [2]r1cs.Num) r1cs.Num {
	three := r1cs.Element(3)
	x := s.Shift(in[0], &three)
	square := s.Lin(s.Product(&x, &x, nil))
	s.Equal(in[1], s.Pick(r1cs.ConstBits(1, 1), in[1], in[0]))
	return s.Assign(s.Combine([]fr.Element{three, three}, []r1cs.Lin{square, s.Lin(in[1])}))
}

// patternList computes what the walk hands over from its definition: x + 3, its square, y, x − y, the combination.
func patternList(x, y fr.Element) []fr.Element {
	list := make([]fr.Element, 5)
	three := r1cs.Element(3)
	list[0].Add(&x, &three)
	list[1].Square(&list[0])
	list[2] = y
	list[3].Sub(&x, &y)
	list[4].Add(&list[1], &y).Mul(&list[4], &three)
	return list
}

func recordedPattern() *r1cs.Pattern {
	x, y := r1cs.Element(7), r1cs.Element(11)
	return r1cs.NewPattern(patternList(x, y), func(s *r1cs.System) { patternWalk(s, patternInputs(x, y)) })
}

func TestReplayHandsOverWhatTheWalkDoes(t *testing.T) {
	t.Parallel()
	pattern := recordedPattern()
	rapid.Check(t, func(t *rapid.T) {
		x, y := drawElement(t, "x"), drawElement(t, "y")
		var traces [2]*r1cstest.Trace
		var positions [2]r1cs.Position
		var last [2]r1cs.Num
		for i := range traces {
			traces[i] = r1cstest.New()
			s := r1cs.NewSystem(r1cs.Start(), nil, traces[i])
			s.Alloc(y)
			if i == 0 {
				last[i] = patternWalk(s, patternInputs(x, y))
			} else {
				last[i] = s.Replay(pattern, patternList(x, y))
			}
			positions[i] = s.Position()
		}
		if diff := cmp.Diff(traces[0], traces[1]); diff != "" {
			t.Fatalf("walk (-), replay (+):\n%s", diff)
		}
		if positions[0] != positions[1] || last[0] != last[1] {
			t.Fatalf("walk ends at %+v in %+v, replay at %+v in %+v", positions[0], last[0], positions[1], last[1])
		}
		s := r1cs.NewSystem(r1cs.Start(), nil, nil)
		s.Alloc(y)
		if s.Replay(pattern, patternList(x, y)); s.Position() != positions[0] {
			t.Fatalf("replay without values ends at %+v, the walk at %+v", s.Position(), positions[0])
		}
	})
}

// patternSink is a Values that takes patterns.
type patternSink struct {
	*r1cstest.Trace
	taken []*r1cs.Pattern
}

func (p *patternSink) Pattern(pattern *r1cs.Pattern, _ []fr.Element) {
	p.taken = append(p.taken, pattern)
}

func TestReplayHandsAWholePatternToWhoTakesIt(t *testing.T) {
	t.Parallel()
	sink := &patternSink{Trace: r1cstest.New()}
	pattern := recordedPattern()
	s := r1cs.NewSystem(r1cs.Start(), nil, sink)
	s.Replay(pattern, patternList(r1cs.Element(1), r1cs.Element(2)))
	if len(sink.taken) != 1 || sink.taken[0] != pattern || len(sink.Aux)+len(sink.A) > 0 {
		t.Errorf("%d patterns taken, %d variables and %d rows beside them", len(sink.taken), len(sink.Aux), len(sink.A))
	}
	// Rows: square, pick, equality, assignment; the variables of all but the equality.
	want := &r1cs.Pattern{
		Aux: []int32{1, 2, 4}, A: []int32{0, 3, 2, 4}, B: []int32{0}, Full: []uint64{0b0001}, Bits: []uint64{0b1110},
	}
	if diff := cmp.Diff(want, pattern, cmpopts.IgnoreUnexported(r1cs.Pattern{})); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestPatternsRefuseWhatTheyCannotHold(t *testing.T) {
	t.Parallel()
	x, y := r1cs.Element(7), r1cs.Element(11)
	list := patternList(x, y)
	record := func(list []fr.Element, walk func(*r1cs.System)) func() {
		return func() { r1cs.NewPattern(list, walk) }
	}
	whole := func(s *r1cs.System) { patternWalk(s, patternInputs(x, y)) }
	for name, misuse := range map[string]func(){
		"element missing":  record(list[1:], whole),
		"element twice":    record(append(list, list[0]), whole),
		"no variable":      record(list, func(*r1cs.System) {}),
		"bits":             record(list, func(s *r1cs.System) { s.AllocPlainBits(3, 1) }),
		"small rows":       record(list, func(s *r1cs.System) { s.AllocBits(3, 1) }),
		"input":            record(list, func(s *r1cs.System) { s.AssignInput(s.Lin(patternInputs(x, y)[1])) }),
		"list of one less": func() { r1cs.NewSystem(r1cs.Start(), nil, nil).Replay(recordedPattern(), list[1:]) },
		"replay for its rows": func() {
			r1cs.NewSystem(r1cs.Start(), r1cstest.New(), nil).Replay(recordedPattern(), list)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			misuse()
		}()
	}
}
