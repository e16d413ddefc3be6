// The base field of BLS12-381, p = 0x1a0111ea…ffffaaab.
#pragma once

#include "field.cuh"

namespace proofrack {

struct FpPrime {
	static constexpr int limbs = 12;
	static constexpr uint32_t inverse32 = 0xfffcfffd;
	static constexpr uint64_t inverse64 = 0x89f3fffcfffcfffd;
	static constexpr bool ends_in_one = false;

	PR_FN static uint32_t modulus(int i) {
		constexpr uint32_t w[limbs] = {0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe, 0xf6b0f624, 0x6730d2a0,
			0xf38512bf, 0x64774b84, 0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea};
		return w[i];
	}
	PR_FN static uint32_t one(int i) {
		constexpr uint32_t w[limbs] = {0x0002fffd, 0x76090000, 0xc40c0002, 0xebf4000b, 0x53c758ba, 0x5f489857,
			0x70525745, 0x77ce5853, 0xa256ec6d, 0x5c071a97, 0xfa80e493, 0x15f65ec3};
		return w[i];
	}
	PR_FN static uint32_t square(int i) {
		constexpr uint32_t w[limbs] = {0x1c341746, 0xf4df1f34, 0x09d104f1, 0x0a76e6a6, 0x4c95b6d5, 0x8de5476c,
			0x939d83c0, 0x67eb88a9, 0xb519952d, 0x9a793e85, 0x92cae3aa, 0x11988fe5};
		return w[i];
	}
};

using Fp = Field<FpPrime>;
static_assert(sizeof(Fp) == 48, "gnark-crypto's fp.Element");

} // namespace proofrack
