// The scalar field of BLS12-381, r = 0x73eda753…00000001.
#pragma once

#include "field.cuh"

namespace proofrack {

struct FrPrime {
	static constexpr int limbs = 8;
	static constexpr uint32_t inverse32 = 0xffffffff;
	static constexpr uint64_t inverse64 = 0xfffffffeffffffff;
	static constexpr bool ends_in_one = true;

	PR_FN static uint32_t modulus(int i) {
		constexpr uint32_t w[limbs] = {0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402, 0x09a1d805, 0x3339d808,
			0x299d7d48, 0x73eda753};
		return w[i];
	}
	PR_FN static uint32_t one(int i) {
		constexpr uint32_t w[limbs] = {0xfffffffe, 0x00000001, 0x00034802, 0x5884b7fa, 0xecbc4ff5, 0x998c4fef,
			0xacc5056f, 0x1824b159};
		return w[i];
	}
	PR_FN static uint32_t square(int i) {
		constexpr uint32_t w[limbs] = {0xf3f29c6d, 0xc999e990, 0x87925c23, 0x2b6cedcb, 0x7254398f, 0x05d31496,
			0x9f59ff11, 0x0748d9d9};
		return w[i];
	}
};

using Fr = Field<FrPrime>;
static_assert(sizeof(Fr) == 32, "gnark-crypto's fr.Element");

} // namespace proofrack
