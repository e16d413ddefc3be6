package msm

import (
	"fmt"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
)

// field is what the portable kernel needs of the coordinates' field.
type field[E any] interface {
	*E
	Mul(x, y *E) *E
	Square(x *E) *E
	Add(x, y *E) *E
	Sub(x, y *E) *E
	Double(x *E) *E
	Neg(x *E) *E
	Inverse(x *E) *E
	SetOne() *E
	IsZero() bool
	Equal(x *E) bool
}

// affinePoint is a point that is not the identity.
type affinePoint[E any] struct{ x, y E }

// pointStore is the portable store: gnark's Montgomery form.
type pointStore[E any] []affinePoint[E]

func (s pointStore[E]) len() int { return len(s) }

// codec converts the points of one group between gnark's, the portable and the encoded form.
type codec[A, E any] struct {
	bytes      int
	fromAffine func(*A) affinePoint[E]
	toAffine   func(*affinePoint[E]) A
	getCoord   func(z *E, b []byte) error
	putCoord   func(b []byte, z *E)
}

func g1Codec() codec[bls12381.G1Affine, fp.Element] {
	return codec[bls12381.G1Affine, fp.Element]{
		bytes:      G1Bytes,
		fromAffine: func(a *bls12381.G1Affine) affinePoint[fp.Element] { return affinePoint[fp.Element]{a.X, a.Y} },
		toAffine:   func(p *affinePoint[fp.Element]) bls12381.G1Affine { return bls12381.G1Affine{X: p.x, Y: p.y} },
		getCoord:   getFp,
		putCoord:   putFp,
	}
}

func g2Codec() codec[bls12381.G2Affine, bls12381.E2] {
	return codec[bls12381.G2Affine, bls12381.E2]{
		bytes: G2Bytes,
		fromAffine: func(a *bls12381.G2Affine) affinePoint[bls12381.E2] {
			return affinePoint[bls12381.E2]{a.X, a.Y}
		},
		toAffine: func(p *affinePoint[bls12381.E2]) bls12381.G2Affine {
			return bls12381.G2Affine{X: p.x, Y: p.y}
		},
		getCoord: func(z *bls12381.E2, b []byte) error {
			if err := getFp(&z.A1, b[:coordBytes]); err != nil {
				return err
			}
			return getFp(&z.A0, b[coordBytes:])
		},
		putCoord: func(b []byte, z *bls12381.E2) {
			putFp(b[:coordBytes], &z.A1)
			putFp(b[coordBytes:], &z.A0)
		},
	}
}

func getFp(z *fp.Element, b []byte) error {
	if err := z.SetBytesCanonical(b); err != nil {
		return fmt.Errorf("coordinate not below p: %w", ErrEncoding)
	}
	return nil
}

func putFp(b []byte, z *fp.Element) { fp.BigEndian.PutElement((*[coordBytes]byte)(b), *z) }

// portableKernel is the kernel for any CPU, on gnark's field arithmetic.
type portableKernel[A, E any, P field[E]] struct {
	codec    codec[A, E]
	dx, dy   []E // slope of addition k is dy/dx
	prefix   []E // product of dx[0..k)
	infinite []int
}

func newPortable[A, E any, P field[E]](c codec[A, E]) *portableKernel[A, E, P] {
	return &portableKernel[A, E, P]{
		codec: c, dx: make([]E, batchMax), dy: make([]E, batchMax), prefix: make([]E, batchMax),
	}
}

func (*portableKernel[A, E, P]) newStore(n int) store { return make(pointStore[E], n) }

func (k *portableKernel[A, E, P]) pointBytes() int { return k.codec.bytes }

func (k *portableKernel[A, E, P]) load(dst store, at int, bases Bases[A], idx []int32) error {
	out := dst.(pointStore[E])[at : at+len(idx)]
	if bases.size == 0 {
		for j, i := range idx {
			out[j] = k.codec.fromAffine(&bases.affine[i])
		}
		return nil
	}
	half := k.codec.bytes / 2
	for j, i := range idx {
		b := bases.point(int(i))
		if err := k.codec.getCoord(&out[j].x, b[:half]); err != nil {
			return fmt.Errorf("decode x of point %d: %w", i, err)
		}
		if err := k.codec.getCoord(&out[j].y, b[half:]); err != nil {
			return fmt.Errorf("decode y of point %d: %w", i, err)
		}
	}
	return nil
}

func (*portableKernel[A, E, P]) assign(dst store, d int, src store, s uint32) {
	to := &dst.(pointStore[E])[d]
	*to = src.(pointStore[E])[s&^negative]
	if s&negative != 0 {
		P(&to.y).Neg(&to.y)
	}
}

func (k *portableKernel[A, E, P]) add(dst store, d []uint32, src store, s []uint32, _ *pairs) []int {
	k.infinite = k.infinite[:0]
	if len(d) == 0 {
		return nil
	}
	to, from := dst.(pointStore[E]), src.(pointStore[E])
	var product E
	P(&product).SetOne()
	for i := range d {
		if !k.slope(i, &to[d[i]], &from[s[i]&^negative], s[i]&negative != 0) {
			k.infinite = append(k.infinite, i)
			P(&k.dx[i]).SetOne()
		}
		k.prefix[i] = product
		P(&product).Mul(&product, &k.dx[i])
	}
	P(&product).Inverse(&product)
	var slope, x E
	for i := len(d) - 1; i >= 0; i-- {
		P(&slope).Mul(&product, &k.prefix[i])
		P(&product).Mul(&product, &k.dx[i])
		P(&slope).Mul(&slope, &k.dy[i])
		p, q := &to[d[i]], &from[s[i]&^negative]
		P(&x).Square(&slope)
		P(&x).Sub(&x, &p.x)
		P(&x).Sub(&x, &q.x)
		P(&p.x).Sub(&p.x, &x)
		P(&p.x).Mul(&p.x, &slope)
		P(&p.y).Sub(&p.x, &p.y)
		p.x = x
	}
	return k.infinite
}

// slope sets dx[i] and dy[i] for p+q, or p-q; false means that the sum is the identity.
func (k *portableKernel[A, E, P]) slope(i int, p, q *affinePoint[E], minus bool) bool {
	dx, dy := P(&k.dx[i]), P(&k.dy[i])
	dx.Sub(&q.x, &p.x)
	y := q.y
	if minus {
		P(&y).Neg(&y)
	}
	dy.Sub(&y, &p.y)
	if !dx.IsZero() {
		return true
	}
	if !P(&p.y).Equal(&y) || P(&y).IsZero() {
		return false
	}
	dx.Double(&y) // the tangent: both curves have a = 0
	dy.Square(&p.x)
	x2 := *dy
	dy.Double(&x2)
	dy.Add((*E)(dy), &x2)
	return true
}

func (*portableKernel[A, E, P]) fetch(store, []uint32) {}

func (k *portableKernel[A, E, P]) affine(src store, i int) A {
	return k.codec.toAffine(&src.(pointStore[E])[i])
}

func (k *portableKernel[A, E, P]) encode(out []byte, src store, n int) {
	half := k.codec.bytes / 2
	for i := range src.(pointStore[E])[:n] {
		p := &src.(pointStore[E])[i]
		b := out[i*k.codec.bytes : (i+1)*k.codec.bytes]
		k.codec.putCoord(b[:half], &p.x)
		k.codec.putCoord(b[half:], &p.y)
	}
}

func (k *portableKernel[A, E, P]) export(out []A, src store, n int) {
	for i := range n {
		out[i] = k.affine(src, i)
	}
}
