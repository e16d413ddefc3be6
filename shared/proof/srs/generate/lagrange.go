package generate

import (
	"fmt"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
)

// domain are the constants of evaluation at tau over the m-th roots of unity.
type domain struct {
	bits   int // m = 2^bits
	tau    fr.Element
	omega  fr.Element
	target fr.Element // tau^m - 1
	factor fr.Element // (tau^m - 1)/m
}

func newDomain(bits int, tau fr.Element) (*domain, error) {
	d := &domain{bits: bits, tau: tau}
	m := uint64(1) << bits
	var err error
	if d.omega, err = fft.Generator(m); err != nil {
		return nil, fmt.Errorf("find domain of 2^%d: %w", bits, err)
	}
	d.target = tau
	for range bits {
		d.target.Square(&d.target)
	}
	one := fr.One()
	d.target.Sub(&d.target, &one)
	if d.target.IsZero() {
		return nil, fmt.Errorf("tau is a root of unity of order 2^%d: %w", bits, ErrScalars)
	}
	d.factor.SetUint64(m).Inverse(&d.factor).Mul(&d.factor, &d.target)
	return d, nil
}

// lagrangeBlock is how many Lagrange values share one inversion.
const lagrangeBlock = 1024

// lagrange gives L_k(tau) for k = start, start+1, …
type lagrange struct {
	domain *domain
	power  fr.Element   // omega^k of the first value behind block
	block  []fr.Element // values in hand
	used   int
}

func (d *domain) lagrangeFrom(k int) *lagrange {
	l := &lagrange{domain: d, block: make([]fr.Element, lagrangeBlock), used: lagrangeBlock}
	l.power.Exp(d.omega, big.NewInt(int64(k)))
	return l
}

// next is the following value.
func (l *lagrange) next() *fr.Element {
	if l.used == len(l.block) {
		l.fill()
	}
	l.used++
	return &l.block[l.used-1]
}

// fill computes a block: w^k factor/(tau - w^k).
func (l *lagrange) fill() {
	d := l.domain
	for i := range l.block {
		l.block[i].Sub(&d.tau, &l.power)
		l.power.Mul(&l.power, &d.omega)
	}
	inverses := fr.BatchInvert(l.block)
	for i := range l.block {
		// w^k is tau less the denominator.
		l.block[i].Sub(&d.tau, &l.block[i])
		l.block[i].Mul(&l.block[i], &inverses[i]).Mul(&l.block[i], &d.factor)
	}
	l.used = 0
}
