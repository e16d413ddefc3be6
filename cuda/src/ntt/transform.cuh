// Transforms between coefficients in natural order and values in bit-reversed order, in place, on the roots of x^m − 1
// and on those of x^m + 1. They are those of shared/proof/groth16/internal/ntt, whose documentation has the method: a
// node stands for a polynomial modulo x^M − w², has one twiddle w, and becomes one modulo x^(M/2) − w and one modulo
// x^(M/2) + w; the second domain is the second half of the first one of twice the size, so that it costs nothing.
//
// Stages are cut into passes. A block takes a tile through all stages of a pass in shared memory: all elements of one
// node that are in the same few neighbouring columns of its grid of 2^stages rows. The last pass has one column. Two
// stages at a time are done by a thread on four elements. Twiddles are made by the block, one product each.
#pragma once

#include "tables.cuh"

namespace proofrack {
namespace ntt {

constexpr int tile_bits = 10;
constexpr int column_stages_max = 9;
constexpr int bits_max = 31;

struct Pass {
	static constexpr int threads = 256;
	static constexpr int tile = 1 << tile_bits;
	static constexpr int share = tile / threads;

	// Half an element: what one access moves.
	struct alignas(16) Half {
		uint32_t w[4];
	};
	struct Shared {
		Half low[tile], high[tile];
		Half twiddle_low[base_count], twiddle_high[base_count];
	};

	Fr *x;
	Tables tables;
	int bits, depth, stages;
	int columns_bits; // columns in a tile
	bool negacyclic, inverse;

	template <class B>
	PR_FN void run(B &b) const {
		Shared &s = b.shared();
		const int stride_bits = bits - depth - stages, size_bits = stages + columns_bits;
		const uint32_t groups_bits = static_cast<uint32_t>(stride_bits - columns_bits);
		const uint32_t j = b.index >> groups_bits, group = b.index & ((1u << groups_bits) - 1);
		const uint32_t node = negacyclic ? j + (1u << depth) : j;
		Fr *origin = x + (uint64_t{j} << (bits - depth)) + (uint64_t{group} << columns_bits);
		auto place = [&](int e) {
			return (uint64_t(e >> columns_bits) << stride_bits) + uint64_t(e & ((1 << columns_bits) - 1));
		};
		struct Share {
			Fr e[share];
		};
		PerThread<Share, threads> kept;
		b.each([&](int t) {
			PR_UNROLL
			for (int i = 0; i < share; i++)
				if (t + i * threads < 1 << size_bits)
					kept[t].e[i] = origin[place(t + i * threads)];
			if (t < stages)
				put(s.low, s.high, t, tables.twiddle(node << t, inverse)); // the heads, where the tile will be
		});
		b.sync();
		b.each([&](int t) { make_twiddles(s, t); });
		b.sync();
		b.each([&](int t) {
			PR_UNROLL
			for (int i = 0; i < share; i++)
				if (t + i * threads < 1 << size_bits)
					put(s.low, s.high, t + i * threads, kept[t].e[i]);
		});
		b.sync();
		all_stages(b, s, size_bits);
		b.each([&](int t) {
			PR_UNROLL
			for (int i = 0; i < share; i++)
				if (t + i * threads < 1 << size_bits)
					origin[place(t + i * threads)] = get(s.low, s.high, t + i * threads);
		});
	}

private:
	// Where an element is in shared memory: neighbours, and every fourth element, are in different banks.
	PR_FN static int spread(int e) { return e ^ (e >> 3 & 7); }

	PR_FN static void put(Half *low, Half *high, int e, const Fr &x) {
		int at = spread(e);
		PR_UNROLL
		for (int i = 0; i < 4; i++) {
			low[at].w[i] = x.v[i];
			high[at].w[i] = x.v[4 + i];
		}
	}

	PR_FN static Fr get(const Half *low, const Half *high, int e) {
		int at = spread(e);
		Fr x;
		PR_UNROLL
		for (int i = 0; i < 4; i++) {
			x.v[i] = low[at].w[i];
			x.v[4 + i] = high[at].w[i];
		}
		return x;
	}

	// Twiddle i of stage u is at 2^u + i; those of the last possible stage are used once and made there, from the head
	// that is at 0.
	PR_FN void make_twiddles(Shared &s, int t) const {
		for (int at = t; at < static_cast<int>(base_count) && at < 1 << stages; at += threads) {
			int u = 0;
			while (at >> (u + 1) != 0)
				u++;
			Fr w = at == 0 ? get(s.low, s.high, stages - 1)
						   : get(s.low, s.high, u) * tables.base_twiddle(static_cast<uint32_t>(at - (1 << u)), inverse);
			put(s.twiddle_low, s.twiddle_high, at, w);
		}
	}

	PR_FN Fr twiddle(const Shared &s, int u, int i) const {
		if (u == stages_max - 1)
			return get(s.twiddle_low, s.twiddle_high, 0) * tables.base_twiddle(static_cast<uint32_t>(i), inverse);
		return get(s.twiddle_low, s.twiddle_high, (1 << u) + i);
	}

	template <class B>
	PR_FN void all_stages(B &b, Shared &s, int size_bits) const {
		const int odd = stages & 1;
		if (odd && !inverse)
			single(b, s, size_bits);
		PR_NOUNROLL
		for (int i = 0; i < stages / 2; i++) {
			int u = inverse ? stages - 2 - 2 * i : odd + 2 * i;
			b.each([&](int t) {
				if (t < 1 << (size_bits - 2))
					pair(s, size_bits, u, t);
			});
			b.sync();
		}
		if (odd && inverse)
			single(b, s, size_bits);
	}

	// Stage 0.
	template <class B>
	PR_FN void single(B &b, Shared &s, int size_bits) const {
		b.each([&](int t) {
			const int half = 1 << (size_bits - 1);
			for (int e = t; e < half; e += threads) {
				Fr x0 = get(s.low, s.high, e), x1 = get(s.low, s.high, e + half);
				butterfly(x0, x1, twiddle(s, 0, 0));
				put(s.low, s.high, e, x0);
				put(s.low, s.high, e + half, x1);
			}
		});
		b.sync();
	}

	// Stages u and u + 1 of four elements.
	PR_FN void pair(Shared &s, int size_bits, int u, int t) const {
		const int quarter_bits = size_bits - u - 2, quarter = 1 << quarter_bits;
		const int j = t >> quarter_bits, e = (j << (quarter_bits + 2)) + (t & (quarter - 1));
		Fr x0 = get(s.low, s.high, e), x1 = get(s.low, s.high, e + quarter);
		Fr x2 = get(s.low, s.high, e + 2 * quarter), x3 = get(s.low, s.high, e + 3 * quarter);
		if (!inverse) {
			Fr w = twiddle(s, u, j);
			butterfly(x0, x2, w);
			butterfly(x1, x3, w);
		}
		butterfly(x0, x1, twiddle(s, u + 1, 2 * j));
		butterfly(x2, x3, twiddle(s, u + 1, 2 * j + 1));
		if (inverse) {
			Fr w = twiddle(s, u, j);
			butterfly(x0, x2, w);
			butterfly(x1, x3, w);
		}
		put(s.low, s.high, e, x0);
		put(s.low, s.high, e + quarter, x1);
		put(s.low, s.high, e + 2 * quarter, x2);
		put(s.low, s.high, e + 3 * quarter, x3);
	}

	// (a, b) -> (a + w b, a − w b), and back, (a, b) -> (a + b, (a − b) w).
	PR_FN void butterfly(Fr &a, Fr &b, const Fr &w) const {
		Fr t = inverse ? b : b * w, sum = a + t, difference = a - t;
		a = sum;
		b = inverse ? difference * w : difference;
	}
};

struct Domain {
	int bits = 0;
	Tables tables;

	// Coefficients in natural order to values in bit-reversed order. pace() is called between passes.
	template <class Pace>
	Status evaluate(const Stream &stream, Fr *x, bool negacyclic, Pace &&pace) const {
		int depth = 0;
		for (int i = 0; i < passes(); i++) {
			int n = stages(i);
			PR_TRY(pass(stream, x, negacyclic, false, depth, n));
			PR_TRY(pace());
			depth += n;
		}
		return Status{};
	}

	// Values in bit-reversed order to 2^bits times the coefficients in natural order.
	template <class Pace>
	Status interpolate(const Stream &stream, Fr *x, bool negacyclic, Pace &&pace) const {
		int depth = bits;
		for (int i = passes() - 1; i >= 0; i--) {
			int n = stages(i);
			depth -= n;
			PR_TRY(pass(stream, x, negacyclic, true, depth, n));
			PR_TRY(pace());
		}
		return Status{};
	}

	int row_stages() const { return bits < stages_max ? bits : stages_max; }
	int column_passes() const { return (bits - row_stages() + column_stages_max - 1) / column_stages_max; }
	int passes() const { return column_passes() + 1; }

	// Stages of the i-th pass from the coefficients' side.
	int stages(int i) const {
		int count = column_passes(), all = bits - row_stages();
		return i == count ? row_stages() : all * (i + 1) / count - all * i / count;
	}

private:
	Status pass(const Stream &stream, Fr *x, bool negacyclic, bool inverse, int depth, int n) const {
		int columns = depth + n == bits ? 0 : tile_bits - n;
		return launch(stream, Pass{x, tables, bits, depth, n, columns, negacyclic, inverse},
			uint64_t{1} << (bits - n - columns));
	}
};

} // namespace ntt
} // namespace proofrack
