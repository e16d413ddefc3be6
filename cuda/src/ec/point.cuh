// Affine points of y² = x³ + b over F, as gnark-crypto has them in memory; infinity is (0, 0), which is on no such curve.
#pragma once

#include "../ff/fp2.cuh"

namespace proofrack {

template <class F>
struct Affine {
	F x, y;

	PR_FN static Affine infinity() { return Affine{F::zero(), F::zero()}; }
	PR_FN bool is_infinity() const { return x.is_zero() && y.is_zero(); }
	PR_FN Affine neg() const { return Affine{x, -y}; }
	PR_FN friend bool operator==(const Affine &a, const Affine &b) { return a.x == b.x && a.y == b.y; }
};

using G1 = Affine<Fp>;
using G2 = Affine<Fp2>;
static_assert(sizeof(G1) == 96 && sizeof(G2) == 192, "gnark-crypto's G1Affine and G2Affine");

} // namespace proofrack
