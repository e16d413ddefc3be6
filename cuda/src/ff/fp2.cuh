// The quadratic extension Fp[u]/(u² + 1).
#pragma once

#include "fp.cuh"

namespace proofrack {

struct Fp2 {
	Fp c0, c1; // c0 + c1·u

	PR_FN static Fp2 zero() { return Fp2{Fp::zero(), Fp::zero()}; }
	PR_FN static Fp2 one() { return Fp2{Fp::one(), Fp::zero()}; }

	PR_FN bool is_zero() const { return c0.is_zero() && c1.is_zero(); }
	PR_FN friend bool operator==(const Fp2 &a, const Fp2 &b) { return a.c0 == b.c0 && a.c1 == b.c1; }
	PR_FN friend bool operator!=(const Fp2 &a, const Fp2 &b) { return !(a == b); }

	PR_FN friend Fp2 operator+(const Fp2 &a, const Fp2 &b) { return Fp2{a.c0 + b.c0, a.c1 + b.c1}; }
	PR_FN friend Fp2 operator-(const Fp2 &a, const Fp2 &b) { return Fp2{a.c0 - b.c0, a.c1 - b.c1}; }
	PR_FN Fp2 operator-() const { return Fp2{-c0, -c1}; }
	PR_FN Fp2 dbl() const { return *this + *this; }

	// Three products: c1 is (a0 + a1)(b0 + b1) without the other two. A call of its own on a GPU, as is the square: else
	// kernels over G2 get so large that compiling them takes minutes each, and their registers spill.
	PR_NOINLINE friend Fp2 operator*(const Fp2 &a, const Fp2 &b) {
		Fp t0 = a.c0 * b.c0, t1 = a.c1 * b.c1;
		Fp cross = (a.c0 + a.c1) * (b.c0 + b.c1);
		return Fp2{t0 - t1, cross - t0 - t1};
	}

	// c0² − c1² = (c0 + c1)(c0 − c1).
	PR_NOINLINE Fp2 sqr() const {
		Fp cross = c0 * c1;
		return Fp2{(c0 + c1) * (c0 - c1), cross.dbl()};
	}

	PR_FN Fp2 &operator+=(const Fp2 &b) { return *this = *this + b; }
	PR_FN Fp2 &operator-=(const Fp2 &b) { return *this = *this - b; }
	PR_FN Fp2 &operator*=(const Fp2 &b) { return *this = *this * b; }

	// 1/x, and 0 for 0: the conjugate over the norm.
	PR_FN Fp2 inverse() const {
		Fp norm = (c0.sqr() + c1.sqr()).inverse();
		return Fp2{c0 * norm, -(c1 * norm)};
	}
};

static_assert(sizeof(Fp2) == 96, "gnark-crypto's E2");

} // namespace proofrack
