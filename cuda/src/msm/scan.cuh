// Exclusive prefix sums of whole numbers, in place.
#pragma once

#include <cstdint>

#include "../launch.cuh"

namespace proofrack {

constexpr int kScanThreads = 256;
constexpr uint32_t kScanTile = kScanThreads * 16;

// Sums of all threads' values before each thread, and of all.
struct ScanShared {
	uint32_t sums[kScanThreads];
};

template <class Block> PR_FN void scan_threads(Block &b, PerThread<uint32_t, kScanThreads> &v, uint32_t (&sums)[kScanThreads]) {
	b.each([&](int t) { sums[t] = v[t]; });
	b.sync();
	PerThread<uint32_t, kScanThreads> other;
	for (int step = 1; step < kScanThreads; step *= 2) {
		b.each([&](int t) { other[t] = t >= step ? sums[t - step] : 0; });
		b.sync();
		b.each([&](int t) { sums[t] += other[t]; });
		b.sync();
	}
	b.each([&](int t) { v[t] = sums[t] - v[t]; });
}

// Scans each tile by itself and gives its sum.
struct ScanTiles {
	static constexpr int threads = kScanThreads;
	using Shared = ScanShared;

	uint32_t *values;
	uint32_t count;
	uint32_t *totals; // one for each tile

	template <class Block> PR_FN void run(Block &b) const {
		constexpr uint32_t share = kScanTile / kScanThreads;
		PerThread<uint32_t, kScanThreads> sum;
		auto &sums = b.shared().sums;
		b.each([&](int t) {
			uint32_t from = b.index * kScanTile + t * share;
			uint32_t s = 0;
			for (uint32_t i = from; i < from + share && i < count; i++)
				s += values[i];
			sum[t] = s;
		});
		scan_threads(b, sum, sums);
		b.each([&](int t) {
			uint32_t from = b.index * kScanTile + t * share;
			uint32_t s = sum[t];
			for (uint32_t i = from; i < from + share && i < count; i++) {
				uint32_t v = values[i];
				values[i] = s;
				s += v;
			}
			if (t == kScanThreads - 1)
				totals[b.index] = s;
		});
	}
};

// One block scans the tiles' sums and gives the sum of all.
struct ScanTotals {
	static constexpr int threads = kScanThreads;
	using Shared = ScanShared;

	uint32_t *totals;
	uint32_t count;
	uint32_t *total;

	template <class Block> PR_FN void run(Block &b) const {
		uint32_t share = (count + kScanThreads - 1) / kScanThreads;
		PerThread<uint32_t, kScanThreads> sum;
		auto &sums = b.shared().sums;
		b.each([&](int t) {
			uint32_t s = 0;
			for (uint32_t i = t * share; i < (t + 1) * share && i < count; i++)
				s += totals[i];
			sum[t] = s;
		});
		scan_threads(b, sum, sums);
		b.each([&](int t) {
			uint32_t s = sum[t];
			for (uint32_t i = t * share; i < (t + 1) * share && i < count; i++) {
				uint32_t v = totals[i];
				totals[i] = s;
				s += v;
			}
			if (t == kScanThreads - 1)
				*total = s;
		});
	}
};

struct AddTotals {
	static constexpr int threads = kScanThreads;
	struct Shared {};

	uint32_t *values;
	uint32_t count;
	const uint32_t *totals;

	template <class Block> PR_FN void run(Block &b) const {
		b.each([&](int t) {
			uint32_t sum = totals[b.index];
			for (uint32_t i = b.index * kScanTile + t; i < (b.index + 1) * kScanTile && i < count; i += kScanThreads)
				values[i] += sum;
		});
	}
};

// How many words of scratch a scan of so many values takes: the tiles' sums.
constexpr uint32_t scan_scratch(uint32_t count) { return (count + kScanTile - 1) / kScanTile; }

// Replaces values by their exclusive prefix sums and puts the sum of all behind *total.
inline Status scan(const Stream &stream, uint32_t *values, uint32_t count, uint32_t *scratch, uint32_t *total) {
	uint32_t tiles = scan_scratch(count);
	PR_TRY(launch(stream, ScanTiles{values, count, scratch}, tiles));
	PR_TRY(launch(stream, ScanTotals{scratch, tiles, total}, 1));
	return launch(stream, AddTotals{values, count, scratch}, tiles);
}

} // namespace proofrack
