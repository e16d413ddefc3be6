package poseidon8

import (
	"fmt"
	"math/big"
	"math/bits"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/poseidon"
)

const (
	// lanes is how many hashes run side by side.
	lanes = 8
	// lanesMin is the smallest remainder that a padded pass hashes faster than single hashes do.
	lanesMin = 2
	maxWidth = 12
	limbBits = 52
	limbMask = 1<<limbBits - 1
	// renewEvery is after how many partial rounds the elements behind the first are multiplied by one; see doc.go.
	renewEvery = 10
)

// vec is one element of the state in all lanes, limb by limb, lowest first.
type vec [5][lanes]uint64

// limbs is a constant.
type limbs [5]uint64

// HashMany writes to dst[k] the hash of inputs[k·arity … k·arity+arity−1] for every k, as poseidon.HashMany does, and
// falls back to it. dst may not overlap inputs. It panics unless arity is 2, 4, 8 or 11 and len(inputs) =
// arity·len(dst).
func HashMany(dst, inputs []fr.Element, arity int) {
	if !supported() {
		poseidon.HashMany(dst, inputs, arity)
		return
	}
	if len(inputs) != arity*len(dst) {
		panic(fmt.Sprintf("poseidon8: %d inputs for %d hashes of arity %d", len(inputs), len(dst), arity))
	}
	p := instance(arity)
	for len(dst) >= lanesMin {
		count := min(len(dst), lanes)
		p.hash(dst[:count], inputs[:count*arity])
		dst, inputs = dst[count:], inputs[count*arity:]
	}
	if len(dst) > 0 {
		poseidon.HashMany(dst, inputs, arity)
	}
}

// params are the constants of one arity as limbs, c·2^260 mod r for c.
type params struct {
	arity, width, fullRounds, partialRounds int

	tag       limbs
	constants []limbs
	// denseM and denseP are the columns of the dense matrices, what and v the vectors of the sparse ones, all of them
	// one after another.
	denseM, denseP, what, v []limbs
	// enter and leave turn the library's Montgomery form, R = 2^256, into ours and back; one is 1.
	enter, leave, one limbs

	// plain are the constants in the library's Montgomery form, and behind them zeros for the last round; plainTag is
	// the tag behind the first S-box with its constant, in the same form.
	plain    []limbs
	plainTag limbs
}

var (
	arity2  = sync.OnceValue(func() *params { return convert(poseidon.Of(2)) })
	arity4  = sync.OnceValue(func() *params { return convert(poseidon.Of(4)) })
	arity8  = sync.OnceValue(func() *params { return convert(poseidon.Of(8)) })
	arity11 = sync.OnceValue(func() *params { return convert(poseidon.Of(11)) })
)

func instance(arity int) *params {
	switch arity {
	case 2:
		return arity2()
	case 4:
		return arity4()
	case 8:
		return arity8()
	case 11:
		return arity11()
	}
	panic(fmt.Sprintf("poseidon8: arity %d is none of 2, 4, 8, 11", arity))
}

// convert brings the constants into Montgomery form with R = 2^260.
func convert(from *poseidon.Params) *params {
	p := &params{
		arity: from.Arity, width: from.Width, fullRounds: from.FullRounds, partialRounds: from.PartialRounds,
		tag: montgomery(&from.Tag), constants: montgomeryAll(from.C),
		one: power(260), enter: power(264), leave: power(256),
	}
	for j := range from.Width {
		p.denseM = append(p.denseM, montgomeryAll(from.ColumnM(j))...)
		p.denseP = append(p.denseP, montgomeryAll(from.ColumnP(j))...)
	}
	for i := range from.Sparse {
		p.what = append(p.what, montgomeryAll(from.Sparse[i].What)...)
		p.v = append(p.v, montgomeryAll(from.Sparse[i].V)...)
	}
	for i := range from.C {
		p.plain = append(p.plain, split(from.C[i]))
	}
	p.plain = append(p.plain, make([]limbs, from.Width)...)
	var tag, fourth fr.Element
	tag.Add(&from.Tag, &from.C[0])
	fourth.Square(&tag).Square(&fourth)
	tag.Mul(&tag, &fourth).Add(&tag, &from.C[from.Width])
	p.plainTag = split(tag)
	return p
}

func montgomeryAll(elements []fr.Element) []limbs {
	out := make([]limbs, len(elements))
	for i := range elements {
		out[i] = montgomery(&elements[i])
	}
	return out
}

func montgomery(e *fr.Element) limbs {
	var scaled fr.Element
	scaled.SetBigInt(new(big.Int).Lsh(big.NewInt(1), 260))
	scaled.Mul(&scaled, e)
	return split(scaled.Bits())
}

// power is 2^n mod r.
func power(n uint) limbs {
	var e fr.Element
	e.SetBigInt(new(big.Int).Lsh(big.NewInt(1), n))
	return split(e.Bits())
}

// split cuts four words into five limbs.
func split(w [4]uint64) limbs {
	return limbs{
		w[0] & limbMask, (w[0]>>52 | w[1]<<12) & limbMask, (w[1]>>40 | w[2]<<24) & limbMask,
		(w[2]>>28 | w[3]<<36) & limbMask, w[3] >> 16,
	}
}

// join is the opposite of split, of a value below 2 r, which it reduces.
func join(l limbs) fr.Element {
	e := fr.Element{l[0] | l[1]<<52, l[1]>>12 | l[2]<<40, l[2]>>24 | l[3]<<28, l[3]>>36 | l[4]<<16}
	modulus := [4]uint64{0xffffffff00000001, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48}
	var reduced fr.Element
	var borrow uint64
	for i := range e {
		reduced[i], borrow = bits.Sub64(e[i], modulus[i], borrow)
	}
	if borrow == 0 {
		return reduced
	}
	return e
}

// hash computes up to eight hashes; lanes without inputs hash zeros and are dropped.
func (p *params) hash(dst, inputs []fr.Element) {
	var a, b [maxWidth]vec
	now, next := &a, &b
	p.enterState(now, inputs, len(dst))
	width := p.width
	constants := p.constants[width:]
	for round := range p.fullRounds / 2 {
		fifthPower(&now[0], &constants[0], width)
		constants = constants[width:]
		columns := p.denseM
		if round == p.fullRounds/2-1 {
			columns = p.denseP
		}
		mix(next, now, columns, width)
		now, next = next, now
	}
	for round := range p.partialRounds {
		fifthPower(&now[0], &constants[round], 1)
		dot(&next[0], &now[0], &p.what[round*width], width)
		mulAdd(&now[0], &p.v[round*(width-1)], width-1)
		now[0] = next[0]
		if round%renewEvery == renewEvery-1 {
			scale(&now[1], &p.one, width-1)
		}
	}
	constants = constants[p.partialRounds:]
	for range p.fullRounds/2 - 1 {
		fifthPower(&now[0], &constants[0], width)
		constants = constants[width:]
		mix(next, now, p.denseM, width)
		now, next = next, now
	}
	var zeros [maxWidth]limbs
	fifthPower(&now[0], &zeros[0], width)
	dot(&next[0], &now[0], &p.denseM[width], width)
	scale(&next[0], &p.leave, 1)
	for k := range dst {
		dst[k] = join(next[0].lane(k))
	}
}

// enterState fills the state with the tag and the inputs and adds the first constants.
func (p *params) enterState(state *[maxWidth]vec, inputs []fr.Element, count int) {
	for k := range count {
		for i := range p.arity {
			state[i+1].setLane(k, split(inputs[k*p.arity+i]))
		}
	}
	scale(&state[1], &p.enter, p.arity)
	for k := range lanes {
		state[0].setLane(k, p.tag)
	}
	for i := range p.width {
		state[i].add(&p.constants[i])
	}
}

// mix writes now·Q to next; columns are those of Q, one after another.
func mix(next, now *[maxWidth]vec, columns []limbs, width int) {
	for j := range width {
		dot(&next[j], &now[0], &columns[j*width], width)
	}
}

func (v *vec) setLane(k int, l limbs) {
	for i := range l {
		v[i][k] = l[i]
	}
}

func (v *vec) lane(k int) (l limbs) {
	for i := range l {
		l[i] = v[i][k]
	}
	return l
}

// add adds a constant to all lanes.
func (v *vec) add(c *limbs) {
	for k := range lanes {
		var carry uint64
		for i := range c {
			sum := v[i][k] + c[i] + carry
			v[i][k], carry = sum&limbMask, sum>>limbBits
		}
	}
}
