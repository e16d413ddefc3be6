// What a circuit's proofs consist of: counts, checked, and the parts of a segment that the device gets.
#pragma once

#include <cstdint>

#include "../device/status.h"

namespace proofrack {

constexpr int kDomainBitsMax = 27;
constexpr uint64_t kCountMax = 1ull << 31; // as in a segment
constexpr uint64_t kRankBlock = 4096;      // likewise
constexpr uint64_t kElementBytes = 32;

constexpr uint64_t words_of(uint64_t bits) { return (bits + 63) / 64; }
constexpr uint64_t ranks_of(uint64_t bits) { return (bits + kRankBlock - 1) / kRankBlock; }

inline int domain_bits(uint64_t rows) {
	int bits = 0;
	while ((1ull << bits) < rows)
		bits++;
	return bits;
}

struct Shape : prcuda_shape {
	uint64_t rows_total() const { return rows + inputs; }
	int bits() const { return domain_bits(rows_total()); }
	uint64_t domain() const { return 1ull << bits(); }
	uint64_t scalars() const { return inputs + full_aux; } // that are full in a query

	Status check() const {
		const char *what = "take a circuit's counts";
		for (uint64_t n : {rows, inputs, aux, full_a, full_b, full_aux, h, l, a, b})
			if (n >= kCountMax)
				return fail(PRCUDA_ERROR_ARGUMENT, what, "one is too high");
		if (inputs < 1 || rows < 1 || full_a > rows || full_b > rows || full_aux > aux)
			return fail(PRCUDA_ERROR_ARGUMENT, what, "they contradict each other");
		if (bits() > kDomainBitsMax)
			return fail(PRCUDA_ERROR_ARGUMENT, what, "the domain is larger than 2^27");
		if (h != domain() - 1 || l != aux || a < inputs || a > inputs + aux || b > inputs + aux)
			return fail(PRCUDA_ERROR_ARGUMENT, what, "the lists of points are not this circuit's");
		return Status{};
	}
};

// One array of a segment and where it goes.
struct Part {
	uint64_t prcuda_layout::*offset;
	uint64_t bytes;
};

enum PartIndex {
	kInputs, kA0, kA1, kB0, kAFull, kBFull, kX0, kXFull, kRankA, kRankB, kRankX, kListA, kListB, kListX, kParts
};

// The parts of a segment by their PartIndex.
struct Parts {
	Part all[kParts];

	explicit Parts(const Shape &s) {
		uint64_t rows = 8 * words_of(s.rows_total()), aux = 8 * words_of(s.aux);
		uint64_t row_ranks = 4 * ranks_of(s.rows_total());
		using L = prcuda_layout;
		const Part parts[kParts] = {
			{&L::inputs, kElementBytes * s.inputs}, {&L::a0, rows}, {&L::a1, rows}, {&L::b0, rows}, {&L::a_full, rows},
			{&L::b_full, rows}, {&L::x0, aux}, {&L::x_full, aux}, {&L::rank_a, row_ranks}, {&L::rank_b, row_ranks},
			{&L::rank_x, 4 * ranks_of(s.aux)}, {&L::list_a, kElementBytes * (s.full_a + s.inputs)},
			{&L::list_b, kElementBytes * s.full_b}, {&L::list_x, kElementBytes * s.full_aux}};
		for (int i = 0; i < kParts; i++)
			all[i] = parts[i];
	}

	Status check(const prcuda_layout &layout) const {
		for (const Part &p : all) {
			uint64_t at = layout.*p.offset;
			if (at % 8 != 0 || at > layout.bytes || p.bytes > layout.bytes - at)
				return fail(PRCUDA_ERROR_ARGUMENT, "take a segment's layout", "a part leaves the segment");
		}
		return Status{};
	}
};

} // namespace proofrack
