// Arithmetic on 32-bit limbs with a carry: the primitives of all device arithmetic. On a GPU each is one PTX instruction
// and the carry is the condition code register; elsewhere the carry is a variable. Everything above this file is the
// same in both, so that the device's algorithms are tested on the processor down to single limbs.
//
// A chain of them must not be interrupted by code that could use the condition code: only primitives, from the one that
// starts it (add_cc, sub_cc, mad_lo_cc) to the one that ends it.
#pragma once

#include "../launch.cuh"

namespace proofrack {

// The carry, or borrow, between two primitives.
struct Carry {
#ifndef __CUDA_ARCH__
	uint32_t flag = 0;
#endif
};

#ifdef __CUDA_ARCH__

#define PR_PTX2(name, instruction)                                                                                     \
	__device__ __forceinline__ uint32_t name(uint32_t a, uint32_t b, Carry &) {                                        \
		uint32_t r;                                                                                                    \
		asm volatile(instruction " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));                                           \
		return r;                                                                                                      \
	}
#define PR_PTX3(name, instruction)                                                                                     \
	__device__ __forceinline__ uint32_t name(uint32_t a, uint32_t b, uint32_t c, Carry &) {                            \
		uint32_t r;                                                                                                    \
		asm volatile(instruction " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));                               \
		return r;                                                                                                      \
	}

PR_PTX2(add_cc, "add.cc.u32")
PR_PTX2(addc_cc, "addc.cc.u32")
PR_PTX2(addc, "addc.u32")
PR_PTX2(sub_cc, "sub.cc.u32")
PR_PTX2(subc_cc, "subc.cc.u32")
PR_PTX2(subc, "subc.u32")
PR_PTX3(mad_lo_cc, "mad.lo.cc.u32")
PR_PTX3(madc_lo_cc, "madc.lo.cc.u32")
PR_PTX3(madc_hi_cc, "madc.hi.cc.u32")
PR_PTX3(madc_hi, "madc.hi.u32")

#undef PR_PTX2
#undef PR_PTX3

__device__ __forceinline__ uint32_t mul_hi(uint32_t a, uint32_t b) { return __umulhi(a, b); }

#else

namespace emulated {

PR_FN uint32_t sum(uint32_t a, uint32_t b, uint32_t carry, Carry &out) {
	uint64_t s = uint64_t{a} + b + carry;
	out.flag = static_cast<uint32_t>(s >> 32);
	return static_cast<uint32_t>(s);
}

PR_FN uint32_t difference(uint32_t a, uint32_t b, uint32_t borrow, Carry &out) {
	uint64_t d = uint64_t{a} - b - borrow;
	out.flag = static_cast<uint32_t>(d >> 63);
	return static_cast<uint32_t>(d);
}

PR_FN uint32_t low(uint32_t a, uint32_t b) { return a * b; }
PR_FN uint32_t high(uint32_t a, uint32_t b) { return static_cast<uint32_t>(uint64_t{a} * b >> 32); }

} // namespace emulated

PR_FN uint32_t add_cc(uint32_t a, uint32_t b, Carry &c) { return emulated::sum(a, b, 0, c); }
PR_FN uint32_t addc_cc(uint32_t a, uint32_t b, Carry &c) { return emulated::sum(a, b, c.flag, c); }
PR_FN uint32_t addc(uint32_t a, uint32_t b, Carry &c) { return a + b + c.flag; }
PR_FN uint32_t sub_cc(uint32_t a, uint32_t b, Carry &c) { return emulated::difference(a, b, 0, c); }
PR_FN uint32_t subc_cc(uint32_t a, uint32_t b, Carry &c) { return emulated::difference(a, b, c.flag, c); }
PR_FN uint32_t subc(uint32_t a, uint32_t b, Carry &c) { return a - b - c.flag; }
PR_FN uint32_t mad_lo_cc(uint32_t a, uint32_t b, uint32_t d, Carry &c) {
	return emulated::sum(emulated::low(a, b), d, 0, c);
}
PR_FN uint32_t madc_lo_cc(uint32_t a, uint32_t b, uint32_t d, Carry &c) {
	return emulated::sum(emulated::low(a, b), d, c.flag, c);
}
PR_FN uint32_t madc_hi_cc(uint32_t a, uint32_t b, uint32_t d, Carry &c) {
	return emulated::sum(emulated::high(a, b), d, c.flag, c);
}
PR_FN uint32_t madc_hi(uint32_t a, uint32_t b, uint32_t d, Carry &c) { return emulated::high(a, b) + d + c.flag; }
PR_FN uint32_t mul_hi(uint32_t a, uint32_t b) { return emulated::high(a, b); }

#endif

} // namespace proofrack
