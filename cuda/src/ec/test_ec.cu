#include "../test.h"

#include "xyzz.cuh"

namespace proofrack {
namespace {

// p and q are affine points, s and t numbers that are not zero: the second way of adding has both points with ZZ of
// their own. The operations are in the order of cuda/curve_test.go.
template <class F>
Status curve(const uint64_t *args) {
	const Affine<F> *p = test_slice<Affine<F>>(args[1]), *q = test_slice<Affine<F>>(args[2]);
	const F *s = test_slice<F>(args[3]);
	Affine<F> *out = test_slice<Affine<F>>(args[4]);
	auto scaled = [](const Affine<F> &a, const F &z) {
		F zz = z.sqr(), zzz = zz * z;
		return a.is_infinity() ? XYZZ<F>::infinity() : XYZZ<F>{a.x * zz, a.y * zzz, zz, zzz};
	};
	for (uint64_t i = 0; i < args[5]; i++) {
		XYZZ<F> a = scaled(p[i], s[i]);
		switch (args[0]) {
		case 0: a.add(q[i]); break;
		case 1: a.add(scaled(q[i], s[i] + F::one())); break;
		case 2: a = a.dbl(); break;
		case 3: a = a.neg(); break;
		case 4: a = XYZZ<F>::from(p[i].neg()); break;
		default: return fail(PRCUDA_ERROR_ARGUMENT, "curve", "operation");
		}
		out[i] = a.to_affine();
	}
	return Status{};
}

} // namespace

PR_TEST_ENTRY(g1, 6) { return curve<Fp>(args); }
PR_TEST_ENTRY(g2, 6) { return curve<Fp2>(args); }

} // namespace proofrack
