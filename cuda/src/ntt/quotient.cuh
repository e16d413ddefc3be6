// The quotient polynomial of a proof, h = (A·B − C)/(x^m − 1), as shared/proof/groth16 computes it: with P = A·B and C
// equal to P modulo x^m − 1, h is half the difference of P modulo x^m − 1, interpolated from a·b on the domain, and P
// modulo x^m + 1, interpolated from it on the coset where x^m = −1. Six transforms, and c is never stored.
#pragma once

#include "../device/arena.cuh"
#include "../expand/expand.cuh"
#include "transform.cuh"

namespace proofrack {

struct MultiplyAll {
	Fr *x;
	const Fr *y;
	PR_FN void operator()(uint64_t i) const {
		Fr a = x[i], b = y[i];
		x[i] = a * b;
	}
};

// Takes the factors that interpolation leaves off both terms, and puts half their difference into the first.
struct HalfDifference {
	Fr *on_coset;
	const Fr *on_domain;
	Fr of_coset, of_domain;
	PR_FN void operator()(uint64_t i) const {
		Fr p = on_coset[i], c = on_domain[i];
		on_coset[i] = c * of_domain - p * of_coset;
	}
};

class Quotient {
public:
	// Takes device memory for the tables of a domain of 2^bits points, bits from 1 to 31.
	static Quotient carve(Carver &device, int bits) {
		Quotient q;
		q.domain_.bits = bits;
		q.domain_.tables.powers = device.take<Fr>(ntt::powers_count);
		q.domain_.tables.base = device.take<Fr>(2 * ntt::base_count);
		return q;
	}

	// Makes the tables.
	Status open(const Stream &stream) const { return ntt::fill(stream, domain_.tables); }

	// Puts the coefficients of h into first, in natural order; second is scratch. Both have 2^bits elements. The last
	// coefficient is zero unless arithmetic or memory is at fault: the caller looks at it. pace() is called between
	// kernels and may end the computation.
	template <class Pace>
	Status compute(const Stream &stream, const Evaluations &e, Fr *first, Fr *second, Pace &&pace) const {
		const int bits = domain_.bits;
		const uint64_t m = uint64_t{1} << bits;
		PR_TRY(expand_a(stream, e, bits, first));
		PR_TRY(to_coset(stream, first, pace));
		PR_TRY(expand_b(stream, e, bits, second));
		PR_TRY(to_coset(stream, second, pace));
		PR_TRY(for_each(stream, MultiplyAll{first, second}, m));
		PR_TRY(domain_.interpolate(stream, first, true, pace));
		PR_TRY(expand_c(stream, e, bits, second));
		PR_TRY(domain_.interpolate(stream, second, false, pace));
		Fr of_domain = Fr::from_u64(2 * m).inverse(), of_m = Fr::from_u64(m).inverse();
		PR_TRY(for_each(stream, HalfDifference{first, second, of_domain * of_m * of_m, of_domain}, m));
		return pace();
	}

	const ntt::Domain &domain() const { return domain_; }

private:
	// From values on the domain to m times those on the coset.
	template <class Pace>
	Status to_coset(const Stream &stream, Fr *x, Pace &&pace) const {
		PR_TRY(domain_.interpolate(stream, x, false, pace));
		return domain_.evaluate(stream, x, true, pace);
	}

	ntt::Domain domain_;
};

} // namespace proofrack
