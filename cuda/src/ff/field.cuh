// Arithmetic modulo a prime with a free top bit, in Montgomery form with R = 2^(32·limbs): gnark-crypto's form.
// Values are in memory as gnark-crypto has them, and always fully reduced.
//
// P gives: limbs (even), and modulus(i), one(i) = R mod p, square(i) = R² mod p by limb, inverse32 and inverse64 = −1/p
// modulo 2^32 and 2^64, and ends_in_one, which tells that the two lowest limbs are 1 and 2^32 − 1.
#pragma once

#include <cstring>

#include "limbs.cuh"

namespace proofrack {

// Go aligns fields to 8 bytes; device memory is the device layer's, and wide loads want 16.
#ifdef PROOFRACK_HOST
#define PR_FIELD_ALIGN 8
#else
#define PR_FIELD_ALIGN 16
#endif

template <class P>
struct alignas(PR_FIELD_ALIGN) Field {
	static constexpr int limbs = P::limbs;
	uint32_t v[limbs];

	PR_FN static Field zero() {
		Field r;
		PR_UNROLL
		for (int i = 0; i < limbs; i++)
			r.v[i] = 0;
		return r;
	}

	PR_FN static Field one() {
		Field r;
		PR_UNROLL
		for (int i = 0; i < limbs; i++)
			r.v[i] = P::one(i);
		return r;
	}

	PR_FN static Field from_u64(uint64_t x) {
		Field r = zero();
		r.v[0] = static_cast<uint32_t>(x);
		r.v[1] = static_cast<uint32_t>(x >> 32);
		return r.to_montgomery();
	}

	PR_FN bool is_zero() const {
		uint32_t any = 0;
		PR_UNROLL
		for (int i = 0; i < limbs; i++)
			any |= v[i];
		return any == 0;
	}

	PR_FN friend bool operator==(const Field &a, const Field &b) {
		uint32_t any = 0;
		PR_UNROLL
		for (int i = 0; i < limbs; i++)
			any |= a.v[i] ^ b.v[i];
		return any == 0;
	}
	PR_FN friend bool operator!=(const Field &a, const Field &b) { return !(a == b); }

	PR_FN friend Field operator+(const Field &a, const Field &b) {
		Field r;
		Carry c;
		r.v[0] = add_cc(a.v[0], b.v[0], c);
		PR_UNROLL
		for (int i = 1; i < limbs - 1; i++)
			r.v[i] = addc_cc(a.v[i], b.v[i], c);
		r.v[limbs - 1] = addc(a.v[limbs - 1], b.v[limbs - 1], c); // the top bit is free
		return r.reduced();
	}

	PR_FN friend Field operator-(const Field &a, const Field &b) {
		Field r;
		Carry c;
		r.v[0] = sub_cc(a.v[0], b.v[0], c);
		PR_UNROLL
		for (int i = 1; i < limbs; i++)
			r.v[i] = subc_cc(a.v[i], b.v[i], c);
		uint32_t mask = subc(0, 0, c); // all ones when b is greater
		Carry d;
		r.v[0] = add_cc(r.v[0], P::modulus(0) & mask, d);
		PR_UNROLL
		for (int i = 1; i < limbs - 1; i++)
			r.v[i] = addc_cc(r.v[i], P::modulus(i) & mask, d);
		r.v[limbs - 1] = addc(r.v[limbs - 1], P::modulus(limbs - 1) & mask, d);
		return r;
	}

	PR_FN Field operator-() const { return zero() - *this; }
	PR_FN Field dbl() const { return *this + *this; }
	PR_FN Field sqr() const { return *this * *this; }

	PR_FN friend Field operator*(const Field &a, const Field &b) {
#if defined(PROOFRACK_HOST) && !defined(PROOFRACK_LIMBS32)
		return mul64(a, b);
#else
		return mul32(a, b);
#endif
	}

	PR_FN Field &operator+=(const Field &b) { return *this = *this + b; }
	PR_FN Field &operator-=(const Field &b) { return *this = *this - b; }
	PR_FN Field &operator*=(const Field &b) { return *this = *this * b; }

	// k times the value, by doublings; for small constants.
	PR_FN Field times(uint32_t k) const {
		Field r = zero(), power = *this;
		for (; k != 0; k >>= 1, power = power.dbl())
			if (k & 1)
				r += power;
		return r;
	}

	// From the number itself to Montgomery form.
	PR_FN Field to_montgomery() const {
		Field square;
		PR_UNROLL
		for (int i = 0; i < limbs; i++)
			square.v[i] = P::square(i);
		return *this * square;
	}

	// The number itself, below p, in the same limbs.
	PR_FN Field to_canonical() const {
		Field unit = zero();
		unit.v[0] = 1;
		return *this * unit;
	}

	// The value to the exponent e.
	PR_NOINLINE Field pow(uint64_t e) const {
		Field r = one();
		PR_NOUNROLL
		for (int i = 63; i >= 0; i--) {
			r = r.sqr();
			if (e >> i & 1)
				r *= *this;
		}
		return r;
	}

	// 1/x, and 0 for 0: the value to the exponent p − 2.
	PR_NOINLINE Field inverse() const {
		Field r = one();
		PR_NOUNROLL
		for (int i = 32 * limbs - 1; i >= 0; i--) {
			r = r.sqr();
			uint32_t word = exponent_limb(i / 32);
			if (word >> (i % 32) & 1)
				r *= *this;
		}
		return r;
	}

	// The product on 32-bit limbs, as GPUs compute it. Two accumulators take the products of the even and of the odd
	// limbs of a, the second one limb higher, so that the high half of each product meets the low half of the next in one
	// chain of carries. A row adds a·b[i] and a multiple m of p that makes the lowest limb zero; leaving that limb out
	// makes the accumulators change places. Their sum stays below 2p.
	PR_FN static Field mul32(const Field &a, const Field &b) {
		uint32_t even[limbs], odd[limbs];
		PR_UNROLL
		for (int i = 0; i < limbs; i++)
			even[i] = odd[i] = 0;
		PR_UNROLL
		for (int i = 0; i < limbs; i += 2) {
			row(even, odd, a, b.v[i], i == 0);
			row(odd, even, a, b.v[i + 1], false);
		}
		// Here the lowest limb of odd has been left out: it weighs as much as even once shifted.
		Field r;
		Carry c;
		r.v[0] = add_cc(even[0], odd[1], c);
		PR_UNROLL
		for (int i = 1; i < limbs - 1; i++)
			r.v[i] = addc_cc(even[i], odd[i + 1], c);
		r.v[limbs - 1] = addc(even[limbs - 1], 0, c);
		return r.reduced();
	}

	// The product on 64-bit limbs, for processors.
	static Field mul64(const Field &a, const Field &b) {
		constexpr int n = limbs / 2;
		uint64_t x[n], y[n], p[n], t[n + 1] = {};
		std::memcpy(x, a.v, sizeof x);
		std::memcpy(y, b.v, sizeof y);
		PR_UNROLL
		for (int i = 0; i < n; i++)
			p[i] = uint64_t{P::modulus(2 * i + 1)} << 32 | P::modulus(2 * i);
		PR_UNROLL
		for (int i = 0; i < n; i++) {
			unsigned __int128 s = static_cast<unsigned __int128>(x[0]) * y[i] + t[0];
			uint64_t m = static_cast<uint64_t>(s) * P::inverse64;
			unsigned __int128 u = static_cast<unsigned __int128>(m) * p[0] + static_cast<uint64_t>(s);
			PR_UNROLL
			for (int j = 1; j < n; j++) {
				s = static_cast<unsigned __int128>(x[j]) * y[i] + t[j] + static_cast<uint64_t>(s >> 64);
				u = static_cast<unsigned __int128>(m) * p[j] + static_cast<uint64_t>(s) + static_cast<uint64_t>(u >> 64);
				t[j - 1] = static_cast<uint64_t>(u);
			}
			t[n - 1] = static_cast<uint64_t>(s >> 64) + static_cast<uint64_t>(u >> 64); // the top bit is free
		}
		Field r;
		std::memcpy(r.v, t, sizeof r.v);
		return r.reduced();
	}

private:
	// Takes p off a value below 2p, unless it is below p.
	PR_FN Field reduced() const {
		Field d;
		Carry c;
		d.v[0] = sub_cc(v[0], P::modulus(0), c);
		PR_UNROLL
		for (int i = 1; i < limbs; i++)
			d.v[i] = subc_cc(v[i], P::modulus(i), c);
		bool below = subc(0, 0, c) != 0;
		PR_UNROLL
		for (int i = 0; i < limbs; i++)
			d.v[i] = below ? v[i] : d.v[i];
		return d;
	}

	// acc += limbs first, first + 2, … of x, times y. What leaves acc at the top is in c.
	PR_FN static void add_products(uint32_t (&acc)[limbs], const uint32_t (&x)[limbs], int first, uint32_t y, Carry &c) {
		acc[0] = mad_lo_cc(x[first], y, acc[0], c);
		acc[1] = madc_hi_cc(x[first], y, acc[1], c);
		PR_UNROLL
		for (int j = 2; j < limbs; j += 2) {
			acc[j] = madc_lo_cc(x[first + j], y, acc[j], c);
			acc[j + 1] = madc_hi_cc(x[first + j], y, acc[j + 1], c);
		}
	}

	// One row of the product; see mul32. low weighs 1, high 2^32. Before all rows but the first, high's lowest limb was
	// left out: what it holds from limb 1 on weighs as much as low.
	PR_FN static void row(uint32_t (&low)[limbs], uint32_t (&high)[limbs], const Field &a, uint32_t y, bool first) {
		Carry c;
		if (first) {
			add_products(high, a.v, 1, y, c);
		} else {
			low[0] = add_cc(low[0], high[1], c);
			PR_UNROLL
			for (int j = 0; j < limbs - 2; j += 2) {
				high[j] = madc_lo_cc(a.v[1 + j], y, high[j + 2], c);
				high[j + 1] = madc_hi_cc(a.v[1 + j], y, high[j + 3], c);
			}
			high[limbs - 2] = madc_lo_cc(a.v[limbs - 1], y, 0, c);
			high[limbs - 1] = madc_hi(a.v[limbs - 1], y, 0, c);
		}
		add_products(low, a.v, 0, y, c);
		high[limbs - 1] = addc(high[limbs - 1], 0, c);
		if (P::ends_in_one)
			reduce_short(low, high);
		else
			reduce_long(low, high);
	}

	PR_FN static void reduce_long(uint32_t (&low)[limbs], uint32_t (&high)[limbs]) {
		uint32_t p[limbs];
		PR_UNROLL
		for (int i = 0; i < limbs; i++)
			p[i] = P::modulus(i);
		uint32_t m = low[0] * P::inverse32;
		Carry c;
		add_products(high, p, 1, m, c); // nothing leaves at the top
		add_products(low, p, 0, m, c);
		high[limbs - 1] = addc(high[limbs - 1], 0, c);
	}

	// The second half of a row where p's lowest limbs are 1 and 2^32 − 1, without products by these: with m = −low[0]
	// modulo 2^32, the halves of m·(2^32 − 1) are low[0] and, unless m is 0, m − 1. (A plain −low[0] would have the compiler
	// move the sign into the factors, and then it does not make one instruction of both halves of a product.)
	PR_FN static void reduce_short(uint32_t (&low)[limbs], uint32_t (&high)[limbs]) {
		Carry c;
		uint32_t was = low[0], m = sub_cc(0, was, c);
		high[0] = add_cc(high[0], was, c);
		high[1] = addc_cc(high[1], was == 0 ? 0 : ~was, c);
		PR_UNROLL
		for (int j = 2; j < limbs; j += 2) {
			high[j] = madc_lo_cc(P::modulus(1 + j), m, high[j], c);
			high[j + 1] = madc_hi_cc(P::modulus(1 + j), m, high[j + 1], c);
		}
		low[0] = add_cc(was, m, c);
		low[1] = addc_cc(low[1], 0, c);
		PR_UNROLL
		for (int j = 2; j < limbs; j += 2) {
			low[j] = madc_lo_cc(P::modulus(j), m, low[j], c);
			low[j + 1] = madc_hi_cc(P::modulus(j), m, low[j + 1], c);
		}
		high[limbs - 1] = addc(high[limbs - 1], 0, c);
	}

	// Limb i of p − 2; both primes end in more than 1.
	PR_FN static uint32_t exponent_limb(int i) {
		// r ends in 1, so the borrow goes into the second limb.
		uint32_t word = P::modulus(i);
		if (i == 0)
			return word - 2;
		return i == 1 && P::modulus(0) < 2 ? word - 1 : word;
	}
};

} // namespace proofrack
