package msm

import (
	"fmt"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// taskPoints is how many consecutive bases one task of a walk looks at; a multiple of 64 and at most
// batchMax.
const taskPoints = batchMax

// Split is a vector of scalars most of which are 0 or 1, over a list of n bases. Bit i%64 of word i/64 of a bitmap
// is for base i; both bitmaps have (n+63)/64 words, with no bit set at n or above. The scalar of base i is
//   - the next of Full, in the order of the bases, where Escapes has the bit (whatever Ones has there),
//   - else 1 where Ones has it,
//   - else 0; such bases are never read.
//
// A nil bitmap has no bit set.
type Split struct {
	Ones    []uint64
	Escapes []uint64
	// Full has one scalar for each bit set in Escapes.
	Full []fr.Element
}

// picked is what a task of a walk has to add.
type picked struct {
	ones []int32
	full []int32
	// scalars belong to full.
	scalars []fr.Element
}

func (p *picked) reset() { p.ones, p.full, p.scalars = p.ones[:0], p.full[:0], p.scalars[:0] }

// selection says which scalar each base has.
type selection interface {
	// len is the number of positions.
	len() int
	// pick appends what positions from..to-1 contribute, from being a multiple of taskPoints.
	pick(p *picked, from, to int)
}

// dense is one scalar for each base.
type dense []fr.Element

func (s dense) len() int { return len(s) }

func (s dense) pick(p *picked, from, to int) {
	for i := from; i < to; i++ {
		switch {
		case s[i].IsZero():
		case s[i].IsOne():
			p.ones = append(p.ones, int32(i))
		default:
			p.full, p.scalars = append(p.full, int32(i)), append(p.scalars, s[i])
		}
	}
}

// splitIndex is a checked Split with the rank of each task's first escape.
type splitIndex struct {
	Split
	count int
	ranks []int
}

func newSplitIndex(s Split, n int) (splitIndex, error) {
	words := (n + 63) / 64
	for _, m := range [][]uint64{s.Ones, s.Escapes} {
		if m != nil && len(m) != words {
			return splitIndex{}, fmt.Errorf("read a bitmap of %d words for %d bases: %w", len(m), n, ErrLength)
		}
		if len(m) > 0 && n%64 != 0 && m[words-1]>>(n%64) != 0 {
			return splitIndex{}, fmt.Errorf("read a bitmap with bits past base %d: %w", n, ErrLength)
		}
	}
	x := splitIndex{Split: s, count: n}
	rank := 0
	for i, w := range s.Escapes {
		if i%(taskPoints/64) == 0 {
			x.ranks = append(x.ranks, rank)
		}
		rank += bits.OnesCount64(w)
	}
	if rank != len(s.Full) {
		return splitIndex{}, fmt.Errorf("read %d scalars for %d escapes: %w", len(s.Full), rank, ErrLength)
	}
	return x, nil
}

func (s splitIndex) len() int { return s.count }

func (s splitIndex) pick(p *picked, from, to int) {
	for w := from / 64; w < (to+63)/64; w++ {
		var ones, escapes uint64
		if s.Ones != nil {
			ones = s.Ones[w]
		}
		if s.Escapes != nil {
			escapes = s.Escapes[w]
		}
		p.ones = appendBits(p.ones, ones&^escapes, w*64)
		p.full = appendBits(p.full, escapes, w*64)
	}
	if len(p.full) > 0 {
		rank := s.ranks[from/taskPoints]
		p.scalars = append(p.scalars, s.Full[rank:rank+len(p.full)]...)
	}
}

// appendBits appends base plus the index of each bit set in w.
func appendBits(list []int32, w uint64, base int) []int32 {
	for ; w != 0; w &= w - 1 {
		list = append(list, int32(base+bits.TrailingZeros64(w)))
	}
	return list
}
