// Signed digits of scalars, and which bucket each one goes to.
//
// A scalar s < r < 2^255 is cut into windows of c bits. To make the digits of all windows independent, half a window is
// added to each window but the last:  s' = s + Σ 2^(c-1)·2^(c·w)  for w < count − 1.  Digit w is then window w of s' less
// 2^(c-1), from −2^(c-1) to 2^(c-1) − 1; the last window's digit is what is left of s' above it, which is at most
// 2^(c-1), because c·count ≥ 256 and s' < 2^(c·(count−1)) · (0.91·2^(t-1) + 0.5 + 2^-c) with t = 256 − c·(count − 1).
#pragma once

#include <cstdint>

#include "../ff/fr.cuh"
#include "../launch.cuh"

namespace proofrack {

constexpr int kScalarLimbs = 8;
constexpr int kScalarBits = 256;      // s' fits
constexpr int kWindowBitsMin = 4;     // below, s' could need another bit
constexpr int kWindowBitsMax = 22;
constexpr uint32_t kNoKey = ~0u;      // sorts behind all keys
constexpr uint32_t kNoPoint = ~0u;    // of a scalar without a point
constexpr uint32_t kNegative = 1u << 31; // mark in an entry's point

// How scalars are cut.
struct Windows {
	uint32_t bits = 0, count = 0;
	uint32_t bias[kScalarLimbs] = {};

	// Buckets of one window: digits 1 … 2^(bits−1), or their negatives.
	PR_FN uint32_t buckets() const { return 1u << (bits - 1); }
	PR_FN uint32_t keys() const { return count * buckets(); }

	static Windows of(uint32_t bits) {
		Windows w;
		w.bits = bits;
		w.count = (kScalarBits + bits - 1) / bits;
		for (uint32_t i = 0; i + 1 < w.count; i++) {
			uint32_t at = i * bits + bits - 1;
			w.bias[at / 32] |= 1u << (at % 32);
		}
		return w;
	}

	// Adds the bias; a canonical scalar leaves no carry.
	PR_FN void prepare(uint32_t (&s)[kScalarLimbs]) const {
		uint64_t carry = 0;
		for (int i = 0; i < kScalarLimbs; i++) {
			carry += uint64_t(s[i]) + bias[i];
			s[i] = uint32_t(carry);
			carry >>= 32;
		}
	}

	// Digit w of a prepared scalar: its size (0 for none) and whether it is negative.
	PR_FN uint32_t digit(const uint32_t (&s)[kScalarLimbs], uint32_t w, bool &negative) const {
		uint32_t at = w * bits, limb = at / 32, shift = at % 32;
		uint64_t pair = s[limb];
		if (limb + 1 < kScalarLimbs)
			pair |= uint64_t(s[limb + 1]) << 32;
		uint32_t value = uint32_t(pair >> shift) & ((1u << bits) - 1);
		negative = false;
		if (w + 1 == count)
			return value;
		uint32_t half = buckets();
		if (value >= half)
			return value - half;
		negative = true;
		return half - value;
	}
};

// Scalars in Montgomery form, with the points that they belong to.
struct Scalars {
	const Fr *values = nullptr;
	const uint32_t *points = nullptr; // index of each scalar's point, or kNoPoint; null: the scalar's own index
	uint32_t count = 0;
	uint32_t base = 0, point_count = 0; // index of the first point at hand, how many there are

	// Index among the points at hand, or kNoPoint.
	PR_FN uint32_t point(uint32_t i) const {
		uint32_t p = points ? points[i] : i;
		return p == kNoPoint || p - base >= point_count ? kNoPoint : p - base;
	}

	Scalars from(uint32_t first, uint32_t length) const {
		if (points)
			return Scalars{values + first, points + first, length, base, point_count};
		return Scalars{values + first, nullptr, length, base - first, point_count};
	}

	PR_FN void prepared(uint32_t i, const Windows &windows, uint32_t (&s)[kScalarLimbs]) const {
		Fr canonical = values[i].to_canonical();
		for (int k = 0; k < kScalarLimbs; k++)
			s[k] = canonical.v[k];
		windows.prepare(s);
	}
};

// One addition: a point, maybe negated, to a bucket.
struct Entry {
	uint32_t key;   // window · buckets + size of the digit − 1
	uint32_t point; // index, with kNegative for the point's negative
};

// Counts the entries of each key.
struct CountDigits {
	static constexpr int threads = 256;
	struct Shared {};

	Scalars scalars;
	Windows windows;
	uint32_t *counts;

	template <class Block> PR_FN void run(Block &b) const {
		b.each([&](int t) {
			uint32_t i = b.index * threads + t;
			if (i >= scalars.count || scalars.point(i) == kNoPoint)
				return;
			uint32_t s[kScalarLimbs];
			scalars.prepared(i, windows, s);
			for (uint32_t w = 0; w < windows.count; w++) {
				bool negative;
				if (uint32_t d = windows.digit(s, w, negative))
					atomic_add(&counts[w * windows.buckets() + d - 1], 1u);
			}
		});
	}
};

// Puts the entries where the scan of the counts says; the offsets move to the ends of the keys' runs.
struct PlaceDigits {
	static constexpr int threads = 256;
	struct Shared {};

	Scalars scalars;
	Windows windows;
	uint32_t *offsets;
	Entry *entries;

	template <class Block> PR_FN void run(Block &b) const {
		b.each([&](int t) {
			uint32_t i = b.index * threads + t;
			if (i >= scalars.count)
				return;
			uint32_t point = scalars.point(i);
			if (point == kNoPoint)
				return;
			uint32_t s[kScalarLimbs];
			scalars.prepared(i, windows, s);
			for (uint32_t w = 0; w < windows.count; w++) {
				bool negative;
				if (uint32_t d = windows.digit(s, w, negative)) {
					uint32_t key = w * windows.buckets() + d - 1;
					entries[atomic_add(&offsets[key], 1u)] = Entry{key, negative ? point | kNegative : point};
				}
			}
		});
	}
};

} // namespace proofrack
