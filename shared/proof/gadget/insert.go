package gadget

import (
	"fmt"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// Insert places x among its siblings at the position given by index (least significant bit first) and returns all
// children in order (spec c2-circuit.md 3.2). There are 1, 3 or 7 siblings.
func Insert(s *r1cs.System, x r1cs.Num, index r1cs.Bits, siblings []r1cs.Num) []r1cs.Num {
	if 1<<index.N != len(siblings)+1 {
		panic(fmt.Sprintf("gadget: %d index bits for %d siblings", index.N, len(siblings)))
	}
	in := inserter{system: s, index: index}
	all := append([]r1cs.Num{x}, siblings...)
	switch index.N {
	case 1:
		return in.two(all)
	case 2:
		return in.four(all)
	case 3:
		return in.eight(all)
	}
	panic(fmt.Sprintf("gadget: insertion among %d children is not supported", 1<<index.N))
}

type inserter struct {
	system *r1cs.System
	index  r1cs.Bits
}

func (in inserter) bit(i int) r1cs.Bits { return in.index.Slice(i, 1) }

func (in inserter) pick(cond r1cs.Bits, a, b r1cs.Num) r1cs.Num { return in.system.Pick(cond, a, b) }

func (in inserter) two(n []r1cs.Num) []r1cs.Num {
	b0 := in.bit(0)
	o0 := in.pick(b0, n[1], n[0])
	return []r1cs.Num{o0, in.pick(b0, n[0], n[1])}
}

func (in inserter) four(n []r1cs.Num) []r1cs.Num {
	b0, b1 := in.bit(0), in.bit(1)
	a, b, c, d := n[0], n[1], n[2], n[3]
	o0 := in.pick(b1, b, in.pick(b0, b, a))
	o1 := in.pick(b1, c, in.pick(b0, a, b))
	o2 := in.pick(b1, in.pick(b0, d, a), c)
	o3 := in.pick(b1, in.pick(b0, a, d), d)
	return []r1cs.Num{o0, o1, o2, o3}
}

func (in inserter) eight(n []r1cs.Num) []r1cs.Num {
	b0, b1, b2 := in.bit(0), in.bit(1), in.bit(2)
	a, b, c, d, e, f, g, h := n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]
	nor := in.system.NotBoth(b0, b1)
	and := in.system.And(b0, b1)
	o0 := in.pick(b2, b, in.pick(nor, a, b))
	o1 := in.pick(b2, c, in.pick(b1, c, in.pick(b0, a, b)))
	o2 := in.pick(b2, d, in.pick(b1, in.pick(b0, d, a), c))
	o3 := in.pick(b2, e, in.pick(and, a, d))
	o4 := in.pick(b2, in.pick(nor, a, f), e)
	o5 := in.pick(b2, in.pick(b1, g, in.pick(b0, a, f)), f)
	o6 := in.pick(b2, in.pick(b1, in.pick(b0, h, a), g), g)
	o7 := in.pick(b2, in.pick(and, a, h), h)
	return []r1cs.Num{o0, o1, o2, o3, o4, o5, o6, o7}
}
