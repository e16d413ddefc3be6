// Sums of runs: a list sorted by key is cut into equal shares, one for each thread, whatever the runs look like, so that
// one bucket that gets everything costs no more than many that get a little.
//
// A run belongs to the thread in whose share it ends: that one adds what it has of it onto the bucket, and no other thread
// does. What a share has of a run that goes on behind it, at most one piece, makes a sorted list of one entry a thread,
// which is summed in the same way by fewer threads, and so on until there is one thread.
#pragma once

#include <cstdint>

#include "../ec/point.cuh"
#include "../ec/xyzz.cuh"
#include "windows.cuh"

namespace proofrack {

// The list of points as the digits say.
template <class F> struct PointItems {
	const Entry *entries;
	const Affine<F> *points;

	PR_FN uint32_t key(uint32_t i) const { return entries[i].key; }
	PR_FN void add(XYZZ<F> &sum, uint32_t i) const {
		uint32_t at = entries[i].point;
		Affine<F> p = points[at & ~kNegative];
		if (at & kNegative)
			p = p.neg();
		sum.add(p);
	}
};

// The list of pieces that a level of threads left.
template <class F> struct PieceItems {
	const uint32_t *keys;
	const XYZZ<F> *sums;

	PR_FN uint32_t key(uint32_t i) const { return keys[i]; }
	PR_FN void add(XYZZ<F> &sum, uint32_t i) const { sum.add(sums[i]); }
};

template <class F, class Items> struct Accumulate {
	static constexpr int threads = 128;
	struct Shared {};

	Items items;
	const uint32_t *count; // of items, on the device
	uint32_t count_fixed;  // when count is null
	uint32_t shares;       // threads that have one
	XYZZ<F> *buckets;
	uint32_t *keys; // of the pieces, one for each share; not written by a single share
	XYZZ<F> *sums;

	template <class Block> PR_FN void run(Block &b) const {
		b.each([&](int t) {
			uint32_t g = b.index * threads + t;
			if (g < shares)
				share(g);
		});
	}

	PR_FN void share(uint32_t g) const {
		uint32_t n = count ? *count : count_fixed;
		uint32_t length = (n + shares - 1) / shares;
		uint64_t start = uint64_t(g) * length;
		uint32_t from = start < n ? uint32_t(start) : n;
		uint32_t to = n - from < length ? n : from + length;
		uint32_t last = from < to ? items.key(to - 1) : kNoKey;
		bool goes_on = last != kNoKey && to < n && items.key(to) == last;
		if (keys) {
			keys[g] = last;
			if (!goes_on)
				sums[g] = XYZZ<F>::infinity();
		}
		for (uint32_t i = from; i < to;) {
			uint32_t key = items.key(i);
			if (key == kNoKey)
				return;
			bool piece = goes_on && key == last;
			XYZZ<F> *to_sum = piece ? &sums[g] : &buckets[key];
			XYZZ<F> sum = piece ? XYZZ<F>::infinity() : *to_sum;
			do
				items.add(sum, i++);
			while (i < to && items.key(i) == key);
			*to_sum = sum;
		}
	}
};

// Sets sums to infinity.
template <class F> struct ClearSums {
	static constexpr int threads = 256;
	struct Shared {};

	XYZZ<F> *sums;
	uint32_t count;

	template <class Block> PR_FN void run(Block &b) const {
		b.each([&](int t) {
			uint32_t i = b.index * threads + t;
			if (i < count)
				sums[i] = XYZZ<F>::infinity();
		});
	}
};

} // namespace proofrack
