// From buckets to the sum of each window: Σ d·bucket[d], and plain sums of groups.
#pragma once

#include <cstdint>

#include "accumulate.cuh"

namespace proofrack {

constexpr uint32_t kBucketShare = 32; // buckets of one thread
constexpr uint32_t kSumShare = 16;    // summands of one thread

// Sums a share of a window's buckets, bucket d counted d times. With the share's first digit f + 1:
// Σ d·bucket[d] = Σ (d − f)·bucket[d] + f·Σ bucket[d], where the first term is the sum of the running sums from above.
template <class F> struct ReduceBuckets {
	static constexpr int threads = 128;
	struct Shared {};

	const XYZZ<F> *buckets;
	uint32_t windows, per_window; // per_window buckets each
	uint32_t shares;              // of each window
	XYZZ<F> *sums;                // windows · shares

	template <class Block> PR_FN void run(Block &b) const {
		b.each([&](int t) {
			uint32_t g = b.index * threads + t;
			if (g >= windows * shares)
				return;
			uint32_t from = g % shares * kBucketShare;
			uint32_t to = per_window - from < kBucketShare ? per_window : from + kBucketShare;
			const XYZZ<F> *window = buckets + uint64_t(g / shares) * per_window;
			XYZZ<F> running = XYZZ<F>::infinity(), total = running;
			for (uint32_t d = to; d > from; d--) {
				running.add(window[d - 1]);
				total.add(running);
			}
			total.add(multiple(running, from));
			sums[g] = total;
		});
	}

	PR_FN static XYZZ<F> multiple(const XYZZ<F> &p, uint32_t n) {
		XYZZ<F> out = XYZZ<F>::infinity();
		for (uint32_t bit = 1u << (kWindowBitsMax - 1); bit; bit >>= 1) {
			out = out.dbl();
			if (n & bit)
				out.add(p);
		}
		return out;
	}
};

// One step of summing groups of equal length: up to kSumShare neighbours of a group become one.
template <class F> struct SumGroups {
	static constexpr int threads = 128;
	struct Shared {};

	const XYZZ<F> *from;
	uint32_t groups, length; // of each
	uint32_t left;           // ⌈length / kSumShare⌉
	XYZZ<F> *to;

	template <class Block> PR_FN void run(Block &b) const {
		b.each([&](int t) {
			uint32_t g = b.index * threads + t;
			if (g >= groups * left)
				return;
			uint32_t start = g % left * kSumShare;
			uint32_t end = length - start < kSumShare ? length : start + kSumShare;
			const XYZZ<F> *group = from + uint64_t(g / left) * length;
			XYZZ<F> sum = group[start];
			for (uint32_t i = start + 1; i < end; i++)
				sum.add(group[i]);
			to[g] = sum;
		});
	}
};

constexpr uint32_t divide_up(uint32_t n, uint32_t by) { return (n + by - 1) / by; }

// Points of scratch for summing groups of that length: one step's result and, behind it, the next one's.
constexpr uint32_t sum_scratch(uint32_t groups, uint32_t length) {
	uint32_t left = divide_up(length, kSumShare);
	return groups * (left + divide_up(left, kSumShare));
}

// Sums each group; *sums is where the groups' sums lie, within scratch, or from itself for groups of one.
template <class F>
inline Status sum_groups(
	const Stream &stream, const XYZZ<F> *from, uint32_t groups, uint32_t length, XYZZ<F> *scratch, const XYZZ<F> **sums) {
	XYZZ<F> *to = scratch, *other = scratch + uint64_t(groups) * divide_up(length, kSumShare);
	while (length > 1) {
		uint32_t left = divide_up(length, kSumShare);
		SumGroups<F> step{from, groups, length, left, to};
		PR_TRY(launch(stream, step, divide_up(groups * left, SumGroups<F>::threads)));
		from = to;
		length = left;
		XYZZ<F> *spare = to;
		to = other;
		other = spare;
	}
	*sums = from;
	return Status{};
}

} // namespace proofrack
