// Points of variables: which of them belong to which point, and sums under a bitmap.
//
// A list of a parameter file leaves out variables that do not occur. The density plane has a bit for each variable that
// has a point; the rank index has, for each block of kRankBits positions, how many bits are set before it.
#pragma once

#include <cstdint>

#include "accumulate.cuh"

namespace proofrack {

constexpr uint32_t kRankBits = 4096;           // as in a segment
constexpr uint32_t kRankWords = kRankBits / 32; // the planes are read in words of 32 bits

PR_FN uint32_t bit_count(uint32_t w) {
#ifdef __CUDA_ARCH__
	return uint32_t(__popc(w));
#else
	return uint32_t(__builtin_popcount(w));
#endif
}

// Index of the lowest bit; w is not 0.
PR_FN uint32_t lowest_bit(uint32_t w) {
#ifdef __CUDA_ARCH__
	return uint32_t(__ffs(int(w)) - 1);
#else
	return uint32_t(__builtin_ctz(w));
#endif
}

// A bitmap with its rank index.
struct Plane {
	const uint32_t *words = nullptr; // null: all positions are set
	const uint32_t *ranks = nullptr;

	PR_FN uint32_t word(uint32_t j) const { return words ? words[j] : ~0u; }

	// Bits set before word j.
	PR_FN uint32_t before(uint32_t j) const {
		if (!words)
			return 32 * j;
		uint32_t n = ranks[j / kRankWords];
		for (uint32_t i = j / kRankWords * kRankWords; i < j; i++)
			n += bit_count(words[i]);
		return n;
	}
};

// Writes for each full element the index of its variable's point.
struct AlignFull {
	static constexpr int threads = 256;
	struct Shared {};

	Plane full, density;
	uint32_t words;      // of the planes
	uint32_t first;      // index of the first variable's point: the inputs' points come before
	uint32_t *points;    // one for each full element
	uint32_t full_count; // of them

	template <class Block> PR_FN void run(Block &b) const {
		b.each([&](int t) {
			uint32_t j = b.index * threads + t;
			if (j >= words)
				return;
			uint32_t w = full.word(j);
			if (w == 0)
				return;
			uint32_t d = density.word(j), at = full.before(j), point = first + density.before(j);
			for (; w && at < full_count; w &= w - 1, at++) {
				uint32_t bit = w & (~w + 1);
				points[at] = d & bit ? point + bit_count(d & (bit - 1)) : kNoPoint;
			}
		});
	}
};

// Adds the points of the variables that are set to sums of many threads, each of which goes through words in strides.
template <class F> struct AddOnes {
	static constexpr int threads = 128;
	struct Shared {};

	const uint32_t *ones;
	Plane density;
	uint32_t from, to;        // words
	uint32_t first;           // index of the first variable's point
	const Affine<F> *points;  // those at hand
	uint32_t base, count;     // index of the first of them, how many there are
	XYZZ<F> *sums;
	uint32_t sum_count;

	template <class Block> PR_FN void run(Block &b) const {
		b.each([&](int t) {
			uint32_t g = b.index * threads + t;
			if (g < sum_count)
				add(g);
		});
	}

	PR_FN void add(uint32_t g) const {
		XYZZ<F> sum = sums[g];
		uint64_t next = uint64_t(from) + g;
		uint32_t w = 0, d = 0, point = 0;
		for (;;) {
			while (w == 0) {
				if (next >= to) {
					sums[g] = sum;
					return;
				}
				d = density.word(uint32_t(next));
				w = ones[next] & d;
				if (w)
					point = first + density.before(uint32_t(next)) - base;
				next += sum_count;
			}
			uint32_t bit = w & (~w + 1);
			uint32_t at = point + bit_count(d & (bit - 1));
			w &= w - 1;
			if (at < count) // else a bit of a chunk's edge that is not this chunk's
				sum.add(points[at]);
		}
	}
};

} // namespace proofrack
