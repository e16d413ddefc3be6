package gadget

import (
	"fmt"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/poseidon8"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// Climb is a way up a Poseidon tree, as the walk will take it: from a leaf, or from the column whose hash is the leaf,
// along a path.
type Climb struct {
	Leaf   fr.Element
	Column []fr.Element // 2 or 11 elements; none when the leaf is given
	Path   []PathElement
}

// Ahead holds the values of one climb's hashes, from the leaf up. A walk that hashes with its method takes them; the
// zero value has none, and the walk computes its own.
type Ahead struct {
	hashes []knownHash
}

// knownHash is a hash with all its values, as poseidon8.Trace lists them.
type knownHash struct{ inputs, values []fr.Element }

// Poseidon is the next hash. It panics when its inputs are not those of the climb.
func (a *Ahead) Poseidon(s *r1cs.System, inputs []r1cs.Num) r1cs.Num {
	if len(a.hashes) == 0 || !s.ValuesOnly() {
		return Poseidon(s, inputs)
	}
	known := &a.hashes[0]
	known.mustTake(inputs)
	a.hashes = a.hashes[1:]
	return s.Replay(poseidonPattern(len(inputs)), known.values)
}

func (k *knownHash) mustTake(inputs []r1cs.Num) {
	if len(inputs) != len(k.inputs) {
		panic(fmt.Sprintf("gadget: the walk hashes %d numbers, the climb %d", len(inputs), len(k.inputs)))
	}
	for i := range inputs {
		if got, want := &inputs[i].Val, &k.inputs[i]; *got != *want {
			panic(fmt.Sprintf("gadget: input %d of the walk's hash is %s, of the climb's %s", i, got.String(), want.String()))
		}
	}
}

// Left is how many hashes the walk has not taken.
func (a *Ahead) Left() int { return len(a.hashes) }

// The patterns of the hash, each recorded at its first use.
var (
	pattern2  = sync.OnceValue(func() *r1cs.Pattern { return recordPoseidon(2) })
	pattern4  = sync.OnceValue(func() *r1cs.Pattern { return recordPoseidon(4) })
	pattern8  = sync.OnceValue(func() *r1cs.Pattern { return recordPoseidon(8) })
	pattern11 = sync.OnceValue(func() *r1cs.Pattern { return recordPoseidon(11) })
)

func poseidonPattern(arity int) *r1cs.Pattern {
	switch arity {
	case 2:
		return pattern2()
	case 4:
		return pattern4()
	case 8:
		return pattern8()
	case 11:
		return pattern11()
	}
	panic(fmt.Sprintf("gadget: arity %d is none of 2, 4, 8, 11", arity))
}

// recordPoseidon walks one hash with made-up inputs.
func recordPoseidon(arity int) *r1cs.Pattern {
	values := [][]fr.Element{make([]fr.Element, arity)}
	nums := make([]r1cs.Num, arity)
	for i := range nums {
		values[0][i].SetUint64(uint64(i + 1))
		nums[i] = r1cs.NumOf(r1cs.AuxVar(i), values[0][i])
	}
	trace := [][]fr.Element{make([]fr.Element, poseidon8.TraceLen(arity))}
	poseidon8.Trace(trace, values)
	return r1cs.NewPattern(trace[0], func(s *r1cs.System) { Poseidon(s, nums) })
}

// Lookahead computes the hashes of climbs before they are walked. The zero value is ready.
type Lookahead struct {
	memory []fr.Element // inputs and values of all hashes
}

// Climb computes the hashes of several climbs side by side, level by level: within a climb alone they depend on each
// other. Where the processor has no instructions for that, there are none. The next call ends the use of what it
// returned. It panics for numbers of siblings that are not 1, 3 or 7.
func (l *Lookahead) Climb(climbs []Climb) []Ahead {
	ahead := make([]Ahead, len(climbs))
	if !poseidon8.CanTrace() {
		return ahead
	}
	levels := l.reserve(climbs)
	nodes := make([]fr.Element, len(climbs))
	for i := range climbs {
		nodes[i] = climbs[i].Leaf
	}
	memory := l.memory
	take := func(n int) []fr.Element {
		taken := memory[:n:n]
		memory = memory[n:]
		return taken
	}
	for level := -1; level < levels; level++ {
		for _, arity := range []int{2, 4, 8, 11} {
			var batch hashBatch
			for i := range climbs {
				if climbs[i].arity(level) != arity {
					continue
				}
				inputs := take(arity)
				climbs[i].children(inputs, level, &nodes[i])
				batch.add(i, inputs, take(poseidon8.TraceLen(arity)))
			}
			batch.compute(ahead, nodes)
		}
	}
	return ahead
}

// hashBatch is hashes of one arity.
type hashBatch struct {
	climbs         []int // whose hashes they are
	inputs, traces [][]fr.Element
}

func (b *hashBatch) add(climb int, inputs, trace []fr.Element) {
	b.climbs = append(b.climbs, climb)
	b.inputs = append(b.inputs, inputs)
	b.traces = append(b.traces, trace)
}

// compute hashes, hands the values to the climbs and moves their nodes up.
func (b *hashBatch) compute(ahead []Ahead, nodes []fr.Element) {
	poseidon8.Trace(b.traces, b.inputs)
	for k, i := range b.climbs {
		trace := b.traces[k]
		ahead[i].hashes = append(ahead[i].hashes, knownHash{inputs: b.inputs[k], values: trace})
		nodes[i] = trace[len(trace)-1]
	}
}

// reserve makes room for all hashes and gives the number of levels.
func (l *Lookahead) reserve(climbs []Climb) int {
	levels, elements := 0, 0
	for i := range climbs {
		levels = max(levels, len(climbs[i].Path))
		for level := -1; level < len(climbs[i].Path); level++ {
			if arity := climbs[i].arity(level); arity > 0 {
				elements += arity + poseidon8.TraceLen(arity)
			}
		}
	}
	if len(l.memory) < elements {
		l.memory = make([]fr.Element, elements)
	}
	return levels
}

// arity is the number of inputs of the hash at a level, that of the column at −1; 0 where there is none.
func (c *Climb) arity(level int) int {
	switch {
	case level < 0:
		return len(c.Column)
	case level < len(c.Path):
		return len(c.Path[level].Siblings) + 1
	}
	return 0
}

// children are the inputs of the hash at a level, own the node below.
func (c *Climb) children(dst []fr.Element, level int, own *fr.Element) {
	if level < 0 {
		copy(dst, c.Column)
		return
	}
	step := &c.Path[level]
	if step.Index < 0 || step.Index >= len(dst) {
		panic(fmt.Sprintf("gadget: child %d of %d", step.Index, len(dst)))
	}
	copy(dst, step.Siblings[:step.Index])
	dst[step.Index] = *own
	copy(dst[step.Index+1:], step.Siblings[step.Index:])
}
