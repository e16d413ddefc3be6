package msm

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/klauspost/cpuid/v2"
)

const (
	blockBytes  = 8 * blockWords
	batchBlocks = batchMax / blockLanes
	// listMax is the room of a list of indices with what is fetched ahead.
	listMax = batchMax + 64
	// coordsMax is the number of base field coordinates of a G2 point.
	coordsMax = 4
)

// vectorSupported reports whether the CPU and the system have the instructions of the vector kernels.
var vectorSupported = sync.OnceValue(func() bool {
	return cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512DQ, cpuid.AVX512BW, cpuid.AVX512VL,
		cpuid.AVX512IFMA, cpuid.AVX512VBMI)
})

// blocks is an array of blocks of eight elements.
type blocks []uint64

// newBlocks returns n blocks on a cache line boundary.
func newBlocks(n int) blocks { return alignedWords(n * blockWords) }

func alignedWords(n int) []uint64 {
	const line = 64
	b := make([]uint64, n+line/8)
	skip := (line - int(uintptr(unsafe.Pointer(&b[0]))%line)) % line / 8
	b = b[skip : skip+n : skip+n]
	adviseHuge(b)
	return b
}

// at returns the address of block i.
func (b blocks) at(i int) *uint64 { return &b[i*blockWords] }

// lane returns element k, counted over the blocks.
func (b blocks) lane(k int) (l limbs) {
	at := k/blockLanes*blockWords + k%blockLanes
	for i := range l {
		l[i] = b[at+i*blockLanes]
	}
	return l
}

func (b blocks) setLane(k int, l *limbs) {
	at := k/blockLanes*blockWords + k%blockLanes
	for i, w := range l {
		b[at+i*blockLanes] = w
	}
}

// filled returns a block with eight times l.
func filled(l limbs) blocks {
	b := newBlocks(1)
	for k := range blockLanes {
		b.setLane(k, &l)
	}
	return b
}

// vectorStore keeps points one after the other, 64 bytes for each base field coordinate: x, y or x0, x1, y0, y1,
// each below 1.0002 p.
type vectorStore struct {
	words []uint64
	count int
	point int // words of a point
}

func (s *vectorStore) len() int { return s.count }

// coord returns the address of coordinate c of point 0.
func (s *vectorStore) coord(c int) *uint64 { return &s.words[c*limbCount] }

func (s *vectorStore) limbs(i, c int) *limbs { return (*limbs)(s.words[i*s.point+c*limbCount:]) }

// vectorGroup says how the coordinates of a group lie in gnark's points and in encodings.
type vectorGroup[A any] struct {
	coords     int
	shift      int // binary logarithm of the bytes of a stored point
	offsets    [coordsMax]int
	toCoords   func(*A, *[coordsMax]fp.Element)
	fromCoords func(*[coordsMax]fp.Element) A
}

// vectorField is the arithmetic of additions: over Fp for G1, over Fp2 for G2.
type vectorField interface {
	// sums runs the additions p in n blocks, of which count lanes count, and returns the lanes whose sum is the
	// identity. It fetches as many points of the additions ahead.
	sums(dst, src *vectorStore, p pairs, n, count int, ahead pairs) []int
}

// vectorKernel is the kernel on eight lanes of AVX-512 IFMA.
type vectorKernel[A any] struct {
	group     vectorGroup[A]
	field     vectorField
	constants *vectorConstants
	d, s      []uint32 // padded lists
	idx       []int32
	coord     blocks // one coordinate of a batch in conversion
	spare     blocks
	fromPlain blocks
	fromGnark blocks
	toGnark   blocks
	toPlain   blocks
}

func newVectorKernel[A any](g vectorGroup[A], f vectorField) *vectorKernel[A] {
	c := constants()
	return &vectorKernel[A]{
		group: g, field: f, constants: c,
		d: make([]uint32, listMax), s: make([]uint32, listMax), idx: make([]int32, listMax),
		coord: newBlocks(batchBlocks), spare: newBlocks(batchBlocks),
		fromPlain: filled(c.fromPlain), fromGnark: filled(c.fromGnark),
		toGnark: filled(c.toGnark), toPlain: filled(c.toPlain),
	}
}

func newVectorG1() kernel[bls12381.G1Affine] {
	return newVectorKernel(vectorGroup[bls12381.G1Affine]{
		coords: 2, shift: 7, offsets: [coordsMax]int{0, coordBytes},
		toCoords:   func(a *bls12381.G1Affine, c *[coordsMax]fp.Element) { c[0], c[1] = a.X, a.Y },
		fromCoords: func(c *[coordsMax]fp.Element) bls12381.G1Affine { return bls12381.G1Affine{X: c[0], Y: c[1]} },
	}, newVectorFp())
}

func newVectorG2() kernel[bls12381.G2Affine] {
	return newVectorKernel(vectorGroup[bls12381.G2Affine]{
		coords: 4, shift: 8, offsets: [coordsMax]int{coordBytes, 0, 3 * coordBytes, 2 * coordBytes},
		toCoords: func(a *bls12381.G2Affine, c *[coordsMax]fp.Element) {
			c[0], c[1], c[2], c[3] = a.X.A0, a.X.A1, a.Y.A0, a.Y.A1
		},
		fromCoords: func(c *[coordsMax]fp.Element) bls12381.G2Affine {
			return bls12381.G2Affine{X: bls12381.E2{A0: c[0], A1: c[1]}, Y: bls12381.E2{A0: c[2], A1: c[3]}}
		},
	}, newVectorFp2())
}

func (k *vectorKernel[A]) newStore(n int) store {
	point := k.group.coords * limbCount
	return &vectorStore{words: alignedWords(max(n, 1) * point), count: n, point: point}
}

func (k *vectorKernel[A]) pointBytes() int { return 1 << k.group.shift }

// pad fills the lanes after the list's end in the last block with its last entry, and returns the blocks.
func pad[T int32 | uint32](to, list []T) int {
	copy(to, list)
	n := (len(list) + blockLanes - 1) / blockLanes
	for i := len(list); i < n*blockLanes; i++ {
		to[i] = list[len(list)-1]
	}
	return n
}

// places lists the entries at..at+count-1 in d.
func (k *vectorKernel[A]) places(at, count int) (n int) {
	n = (count + blockLanes - 1) / blockLanes
	for i := range n * blockLanes {
		k.d[i] = uint32(at + min(i, count-1))
	}
	return n
}

func (k *vectorKernel[A]) load(dst store, at int, bases Bases[A], idx []int32) error {
	if len(idx) == 0 {
		return nil
	}
	to := dst.(*vectorStore)
	n := k.places(at, len(idx))
	if bases.size == 0 {
		k.loadAffine(to, n, bases.affine, idx)
		return nil
	}
	pad(k.idx, idx)
	for c := range k.group.coords {
		src := &bases.encoded[k.group.offsets[c]]
		if decodeVec(k.coord.at(0), src, &k.idx[0], n, bases.size) != 0 {
			return k.badCoordinate(bases, idx, c)
		}
		mulVec(k.coord.at(0), k.coord.at(0), k.fromPlain.at(0), n, blockBytes, 0)
		scatterVec(to.coord(c), &k.d[0], k.coord.at(0), n, k.group.shift)
	}
	return nil
}

// badCoordinate finds the point whose coordinate c is not below p.
func (k *vectorKernel[A]) badCoordinate(bases Bases[A], idx []int32, c int) error {
	at := k.group.offsets[c]
	for _, i := range idx {
		var e fp.Element
		if err := getFp(&e, bases.point(int(i))[at:at+coordBytes]); err != nil {
			return fmt.Errorf("decode bytes %d to %d of point %d: %w", at, at+coordBytes-1, i, err)
		}
	}
	panic(fmt.Sprintf("msm: no coordinate %d of %d points is above p, but one was found to be", c, len(idx)))
}

func (k *vectorKernel[A]) loadAffine(to *vectorStore, n int, points []A, idx []int32) {
	for c := range k.group.coords {
		for lane := range n * blockLanes {
			var e [coordsMax]fp.Element
			k.group.toCoords(&points[idx[min(lane, len(idx)-1)]], &e)
			l := cut((*[fp.Limbs]uint64)(&e[c]))
			k.coord.setLane(lane, &l)
		}
		mulVec(k.coord.at(0), k.coord.at(0), k.fromGnark.at(0), n, blockBytes, 0)
		scatterVec(to.coord(c), &k.d[0], k.coord.at(0), n, k.group.shift)
	}
}

func (k *vectorKernel[A]) assign(dst store, d int, src store, s uint32) {
	to, from := dst.(*vectorStore), src.(*vectorStore)
	i := int(s&^negative) * from.point
	copy(to.words[d*to.point:(d+1)*to.point], from.words[i:i+from.point])
	if s&negative != 0 {
		for c := k.group.coords / 2; c < k.group.coords; c++ {
			k.constants.negate(to.limbs(d, c))
		}
	}
}

func (k *vectorKernel[A]) fetch(src store, s []uint32) {
	if len(s) > 0 {
		fetchVec(src.(*vectorStore).coord(0), &s[0], len(s), k.group.shift)
	}
}

func (k *vectorKernel[A]) add(dst store, d []uint32, src store, s []uint32, next *pairs) []int {
	if len(d) == 0 {
		return nil
	}
	n := pad(k.d, d)
	pad(k.s, s)
	ahead := pairs{k.d, k.s} // nothing new unless next has enough
	if len(next.d) >= n*blockLanes {
		ahead = *next
	}
	return k.field.sums(dst.(*vectorStore), src.(*vectorStore), pairs{k.d, k.s}, n, len(d), ahead)
}

func (k *vectorKernel[A]) affine(src store, i int) A {
	from := src.(*vectorStore)
	var e [coordsMax]fp.Element
	for c := range k.group.coords {
		e[c] = k.constants.element(from.limbs(i, c))
	}
	return k.group.fromCoords(&e)
}

// convert multiplies coordinate c of the points from..from+count-1 by a constant and leaves it in coord.
func (k *vectorKernel[A]) convert(src *vectorStore, c, from, count int, by blocks) {
	n := k.places(from, count)
	at := src.coord(c)
	gatherY(k.spare.at(0), k.coord.at(0), at, &k.d[0], at, &k.d[0], n, k.group.shift)
	mulVec(k.coord.at(0), k.coord.at(0), by.at(0), n, blockBytes, 0)
}

func (k *vectorKernel[A]) encode(out []byte, src store, n int) {
	size := k.group.coords * coordBytes
	for from := 0; from < n; from += batchMax {
		count := min(batchMax, n-from)
		for c := range k.group.coords {
			k.convert(src.(*vectorStore), c, from, count, k.toPlain)
			for i := range count {
				l := k.coord.lane(i)
				w := k.constants.join(&l)
				to := out[(from+i)*size+k.group.offsets[c]:][:coordBytes]
				for j, word := range w {
					binary.BigEndian.PutUint64(to[coordBytes-8*(j+1):], word)
				}
			}
		}
	}
}

func (k *vectorKernel[A]) export(out []A, src store, n int) {
	coords := make([][coordsMax]fp.Element, min(n, batchMax))
	for from := 0; from < n; from += batchMax {
		count := min(batchMax, n-from)
		for c := range k.group.coords {
			k.convert(src.(*vectorStore), c, from, count, k.toGnark)
			for i := range count {
				l := k.coord.lane(i)
				coords[i][c] = fp.Element(k.constants.join(&l))
			}
		}
		for i := range count {
			out[from+i] = k.group.fromCoords(&coords[i])
		}
	}
}

// vectorFp adds G1 points. Its arrays hold one element for each addition; results take the place of operands.
type vectorFp struct {
	constants           *vectorConstants
	dx, dy, x1, y1, sum blocks
	// prefix[i] is the product of dx[i-2], dx[i-4], ...; back[i+2] is the inverse of dx[i] prefix[i]. The two
	// chains make consecutive products independent.
	prefix, back blocks
	one          blocks
	infinite     []int
	fetch        fetch
}

func newVectorFp() *vectorFp {
	c := constants()
	f := &vectorFp{constants: c, one: filled(c.one)}
	for _, b := range []*blocks{&f.dx, &f.dy, &f.x1, &f.y1, &f.sum} {
		*b = newBlocks(batchBlocks)
	}
	f.prefix, f.back = newBlocks(batchBlocks+2), newBlocks(batchBlocks+2)
	return f
}

// fetch is the points that the additions ahead use.
type fetch struct {
	dst, src *uint64
	ahead    pairs
}

// quarter returns the lists from the given quarter on, of the points ahead of n blocks.
func (f *fetch) quarter(i, n int) (d, s *uint32) {
	return &f.ahead.d[i*2*n], &f.ahead.s[i*2*n]
}

// mul multiplies n blocks and fetches a quarter of the points ahead.
func (f *vectorFp) mul(dst, a, b *uint64, n, quarter, stride int) {
	d, s := f.fetch.quarter(quarter, n)
	mulFetchVec(dst, a, b, n, stride, f.fetch.dst, d, f.fetch.src, s)
}

func (f *vectorFp) sums(dst, src *vectorStore, p pairs, n, count int, ahead pairs) []int {
	const shift = 7
	d, s := p.d, p.s
	f.fetch = fetch{dst.coord(0), src.coord(0), ahead}
	gatherX(f.dx.at(0), f.x1.at(0), f.sum.at(0), dst.coord(0), &d[0], src.coord(0), &s[0], n, shift)
	gatherY(f.dy.at(0), f.y1.at(0), dst.coord(1), &d[0], src.coord(1), &s[0], n, shift)
	f.infinite = f.infinite[:0]
	if !f.invert(n) {
		f.special(n * blockLanes)
		if !f.invert(n) {
			panic("msm: zero denominator left in a batch")
		}
	}
	lambda, x3, y3 := f.dy, f.sum, f.y1
	f.mul(f.prefix.at(0), f.prefix.at(0), f.back.at(2), n, 2, blockBytes)
	f.mul(lambda.at(0), f.prefix.at(0), f.dy.at(0), n, 3, blockBytes)
	sqrSubVec(x3.at(0), lambda.at(0), f.sum.at(0), n)
	subVec(f.x1.at(0), f.x1.at(0), x3.at(0), n, blockBytes)
	mulSubVec(y3.at(0), lambda.at(0), f.x1.at(0), f.y1.at(0), n)
	scatterVec(dst.coord(0), &d[0], x3.at(0), n, shift)
	scatterVec(dst.coord(1), &d[0], y3.at(0), n, shift)
	return slices.DeleteFunc(f.infinite, func(k int) bool { return k >= count })
}

// invert fills prefix and back; false means that some dx is 0.
func (f *vectorFp) invert(n int) bool {
	copy(f.prefix, f.one)
	copy(f.prefix[blockWords:], f.one)
	f.mul(f.prefix.at(2), f.prefix.at(0), f.dx.at(0), n, 0, blockBytes)
	var e, products [2 * blockLanes]fp.Element
	product := fp.One()
	for k := range e {
		l := f.prefix.lane(n*blockLanes + k)
		e[k] = f.constants.join(&l)
		if e[k].IsZero() {
			return false
		}
		products[k] = product
		product.Mul(&product, &e[k])
	}
	product.Inverse(&product)
	product.Mul(&product, &f.constants.undo)
	for k := len(e) - 1; k >= 0; k-- {
		var inverse fp.Element
		inverse.Mul(&product, &products[k])
		product.Mul(&product, &e[k])
		l := cut((*[fp.Limbs]uint64)(&inverse))
		f.back.setLane(n*blockLanes+k, &l)
	}
	if n > 2 {
		f.mul(f.back.at(n-1), f.back.at(n+1), f.dx.at(n-1), n-2, 1, -blockBytes)
	}
	return true
}

// special handles the lanes whose points have the same x: it puts the tangent in place of the chord, or marks the
// sum as the identity.
func (f *vectorFp) special(lanes int) {
	for k := range lanes {
		dx := f.dx.lane(k)
		if e := fp.Element(f.constants.join(&dx)); !e.IsZero() {
			continue
		}
		dy, x, y := f.dy.lane(k), f.x1.lane(k), f.y1.lane(k)
		slope, px, py := f.constants.element(&dy), f.constants.element(&x), f.constants.element(&y)
		if !slope.IsZero() || py.IsZero() {
			f.infinite = append(f.infinite, k)
			f.dx.setLane(k, &f.constants.one)
			continue
		}
		var x2 fp.Element
		x2.Square(&px)
		slope.Double(&x2)
		slope.Add(&slope, &x2)
		py.Double(&py)
		dx, dy = f.constants.limbs(&py), f.constants.limbs(&slope)
		f.dx.setLane(k, &dx)
		f.dy.setLane(k, &dy)
	}
}
