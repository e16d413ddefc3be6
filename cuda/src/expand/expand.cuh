// Expands the evaluations of a compact segment (docs/formats.md, "Segment") to vectors of field elements, in the
// bit-reversed order from which a transform interpolates. c is not stored: it is a·b.
//
// A block takes the evaluations whose middle bits are its number: evaluation high·mid·low goes to the place with the bits
// rev(low)·rev(mid)·rev(high), so that runs of evaluations are read, as words of bits, and runs of places written.
#pragma once

#include "../ff/fr.cuh"
#include "bits.cuh"

namespace proofrack {

// The planes, rank indices and lists of a segment, on the device. rows are with the appended input rows.
struct Evaluations {
	const uint64_t *a0, *a1, *b0, *a_full, *b_full;
	const uint32_t *rank_a, *rank_b;
	const Fr *list_a, *list_b;
	uint64_t rows;
};

namespace expansion {

constexpr int threads = 256;
constexpr int tile_bits_max = 5; // of the side of a square: its runs are within one word of 32 bits
constexpr int side_max = 1 << tile_bits_max;
constexpr int sharers = threads / side_max; // threads that count one run's rank together
constexpr uint64_t rank_block = 4096;

// What a block keeps of one vector: the bits of each run, and how many full elements come before it.
struct Runs {
	uint32_t low[side_max], high[side_max], full[side_max];
	uint32_t before[side_max];
	uint32_t parts[side_max][sharers];
};

// One vector of a segment; high is null where codes have one bit.
struct Vector {
	const uint64_t *low, *high, *full;
	const uint32_t *rank;
	const Fr *list;

	// The bits of a run that starts at a position, at most 32 and within one word.
	PR_FN static uint32_t bits(const uint64_t *plane, uint64_t from) {
		return static_cast<uint32_t>(plane[from / 64] >> (from % 64));
	}

	// The share of one thread of the full elements between the run's entry of the rank index and the run.
	PR_FN uint32_t count(uint64_t from, int part) const {
		uint64_t begin = from / rank_block * (rank_block / 64), end = from / 64;
		uint32_t n = 0;
		for (uint64_t w = begin + static_cast<uint64_t>(part); w < end; w += sharers)
			n += count_ones(full[w]);
		if (part == 0)
			n += rank[from / rank_block] + count_ones(full[end] & ((uint64_t{1} << (from % 64)) - 1));
		return n;
	}

	PR_FN void load(Runs &r, int run, uint64_t from) const {
		r.low[run] = bits(low, from);
		r.high[run] = high == nullptr ? 0 : bits(high, from);
		r.full[run] = bits(full, from);
		r.before[run] = 0;
		for (int part = 0; part < sharers; part++)
			r.before[run] += r.parts[run][part];
	}

	PR_FN static bool is_full(const Runs &r, int run, int at) { return r.full[run] >> at & 1; }

	PR_FN Fr full_element(const Runs &r, int run, int at) const {
		return list[r.before[run] + count_ones(r.full[run] & ((1u << at) - 1))];
	}

	// The element of a code: 0, 1, 2, −1.
	PR_FN static Fr code(const Runs &r, int run, int at) {
		uint32_t low = r.low[run] >> at & 1, high = r.high[run] >> at & 1;
		Fr e = high == 0 ? Fr::one() : low == 0 ? Fr::one().dbl() : -Fr::one();
		return (low | high) == 0 ? Fr::zero() : e;
	}

	PR_FN Fr value(const Runs &r, int run, int at) const {
		return is_full(r, run, at) ? full_element(r, run, at) : code(r, run, at);
	}
};

// Writes the elements of first, or of first times second where product is set; second has one-bit codes.
template <bool product>
struct Expand {
	static constexpr int threads = expansion::threads;
	struct Shared {
		Runs first, second;
	};

	Vector first, second;
	uint64_t rows;
	int bits; // of the domain
	Fr *out;

	template <class B>
	PR_FN void run(B &b) const {
		const int tile = bits / 2 < tile_bits_max ? bits / 2 : tile_bits_max, middle = bits - 2 * tile;
		const int side = 1 << tile;
		const uint64_t mid = b.index;
		auto begin = [&](int high) { return uint64_t(high) << (bits - tile) | mid << tile; };
		b.each([&](int t) {
			int high = t / sharers, part = t % sharers;
			if (high >= side || begin(high) >= rows)
				return;
			b.shared().first.parts[high][part] = first.count(begin(high), part);
			if (product)
				b.shared().second.parts[high][part] = second.count(begin(high), part);
		});
		b.sync();
		b.each([&](int t) {
			if (t >= side || begin(t) >= rows)
				return;
			first.load(b.shared().first, t, begin(t));
			if (product)
				second.load(b.shared().second, t, begin(t));
		});
		b.sync();
		b.each([&](int t) {
			for (int e = t; e < side << tile; e += threads) {
				uint32_t low = reverse_bits(static_cast<uint32_t>(e >> tile), tile);
				uint32_t high = reverse_bits(static_cast<uint32_t>(e & (side - 1)), tile);
				uint64_t to = uint64_t(e >> tile) << (bits - tile) |
					uint64_t{reverse_bits(static_cast<uint32_t>(mid), middle)} << tile | uint64_t(e & (side - 1));
				bool there = begin(static_cast<int>(high)) + low < rows;
				out[to] = there ? element(b.shared(), static_cast<int>(high), static_cast<int>(low)) : Fr::zero();
			}
		});
	}

	PR_FN Fr element(const Shared &s, int run, int at) const {
		if (!product)
			return first.value(s.first, run, at);
		if (Vector::is_full(s.second, run, at))
			return first.value(s.first, run, at) * second.full_element(s.second, run, at);
		return s.second.low[run] >> at & 1 ? first.value(s.first, run, at) : Fr::zero();
	}

	static Status launched(const Stream &stream, const Expand &k) {
		int tile = k.bits / 2 < tile_bits_max ? k.bits / 2 : tile_bits_max;
		return launch(stream, k, uint64_t{1} << (k.bits - 2 * tile));
	}
};

inline Vector vector_a(const Evaluations &e) { return Vector{e.a0, e.a1, e.a_full, e.rank_a, e.list_a}; }
inline Vector vector_b(const Evaluations &e) { return Vector{e.b0, nullptr, e.b_full, e.rank_b, e.list_b}; }

} // namespace expansion

// Fills out, of 2^bits elements, with the evaluations of a and zeros behind them. Rows are at most 2^bits, which is at
// most 2^31.
inline Status expand_a(const Stream &stream, const Evaluations &e, int bits, Fr *out) {
	using K = expansion::Expand<false>;
	return K::launched(stream, K{expansion::vector_a(e), expansion::Vector{}, e.rows, bits, out});
}

inline Status expand_b(const Stream &stream, const Evaluations &e, int bits, Fr *out) {
	using K = expansion::Expand<false>;
	return K::launched(stream, K{expansion::vector_b(e), expansion::Vector{}, e.rows, bits, out});
}

inline Status expand_c(const Stream &stream, const Evaluations &e, int bits, Fr *out) {
	using K = expansion::Expand<true>;
	return K::launched(stream, K{expansion::vector_a(e), expansion::vector_b(e), e.rows, bits, out});
}

} // namespace proofrack
