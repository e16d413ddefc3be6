// Points of y² = x³ + b in extended Jacobian coordinates: x = X/ZZ, y = Y/ZZZ, ZZ³ = ZZZ². Infinity has ZZ = 0.
// Additions are complete: the same point, the opposite one and infinity on either side are taken care of. The curves
// have no point with y = 0. Formulas: explicit-formulas database, "shortw xyzz", a = 0.
#pragma once

#include "point.cuh"

namespace proofrack {

template <class F>
struct XYZZ {
	F x, y, zz, zzz;

	PR_FN static XYZZ infinity() { return XYZZ{F::zero(), F::zero(), F::zero(), F::zero()}; }
	PR_FN static XYZZ from(const Affine<F> &p) {
		return p.is_infinity() ? infinity() : XYZZ{p.x, p.y, F::one(), F::one()};
	}
	PR_FN bool is_infinity() const { return zz.is_zero(); }
	PR_FN XYZZ neg() const { return XYZZ{x, -y, zz, zzz}; }

	// madd-2008-s: 8 products, 2 squares.
	PR_FN void add(const Affine<F> &q) {
		if (q.is_infinity())
			return;
		if (is_infinity()) {
			*this = from(q);
			return;
		}
		F p = q.x * zz - x, r = q.y * zzz - y;
		if (p.is_zero()) {
			*this = r.is_zero() ? doubled(q) : infinity();
			return;
		}
		F pp = p.sqr(), ppp = p * pp;
		combine(x * pp, y, r, ppp);
		zz *= pp;
		zzz *= ppp;
	}

	// add-2008-s: 12 products, 2 squares. A call of its own on a GPU, as are doublings: what it costs is little beside the
	// products, and kernels stay small.
	PR_NOINLINE void add(const XYZZ &q) {
		if (q.is_infinity())
			return;
		if (is_infinity()) {
			*this = q;
			return;
		}
		F u = x * q.zz, s = y * q.zzz;
		F p = q.x * zz - u, r = q.y * zzz - s;
		if (p.is_zero()) {
			*this = r.is_zero() ? q.dbl() : infinity();
			return;
		}
		F pp = p.sqr(), ppp = p * pp;
		combine(u * pp, s, r, ppp);
		zz *= q.zz * pp;
		zzz *= q.zzz * ppp;
	}

	// dbl-2008-s-1: 6 products, 3 squares.
	PR_NOINLINE XYZZ dbl() const {
		if (is_infinity())
			return *this;
		XYZZ r = doubled(Affine<F>{x, y});
		r.zz *= zz;
		r.zzz *= zzz;
		return r;
	}

	PR_FN Affine<F> to_affine() const {
		if (is_infinity())
			return Affine<F>::infinity();
		F inverse = zzz.inverse(), z = zz * inverse; // z is 1/Z
		return Affine<F>{x * z.sqr(), y * inverse};
	}

private:
	// Twice a point with ZZ = 1, which is not infinity.
	PR_NOINLINE static XYZZ doubled(const Affine<F> &q) {
		F u = q.y.dbl(), v = u.sqr(), w = u * v, s = q.x * v, square = q.x.sqr();
		F m = square.dbl() + square;
		XYZZ r;
		r.x = m.sqr() - s.dbl();
		r.y = m * (s - r.x) - w * q.y;
		r.zz = v;
		r.zzz = w;
		return r;
	}

	// What both additions end with: q is U1·PP, s is S1.
	PR_FN void combine(const F &q, const F &s, const F &r, const F &ppp) {
		F sum = r.sqr() - ppp - q.dbl();
		y = r * (q - sum) - s * ppp;
		x = sum;
	}
};

using G1XYZZ = XYZZ<Fp>;
using G2XYZZ = XYZZ<Fp2>;

} // namespace proofrack
