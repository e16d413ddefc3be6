// Counting and reversing bits, on devices and on the host.
#pragma once

#include "../launch.cuh"

namespace proofrack {

PR_FN uint32_t reverse_bits(uint32_t x) {
#ifdef __CUDA_ARCH__
	return __brev(x);
#else
	x = (x & 0x55555555) << 1 | (x >> 1 & 0x55555555);
	x = (x & 0x33333333) << 2 | (x >> 2 & 0x33333333);
	x = (x & 0x0f0f0f0f) << 4 | (x >> 4 & 0x0f0f0f0f);
	return __builtin_bswap32(x);
#endif
}

// The lowest n bits of i in reverse, n from 0 to 32.
PR_FN uint32_t reverse_bits(uint32_t i, int n) { return n == 0 ? 0 : reverse_bits(i) >> (32 - n); }

PR_FN uint32_t count_ones(uint64_t x) {
#ifdef __CUDA_ARCH__
	return static_cast<uint32_t>(__popcll(x));
#else
	return static_cast<uint32_t>(__builtin_popcountll(x));
#endif
}

} // namespace proofrack
