// The roots of unity of all transforms, in two small tables.
#pragma once

#include "../expand/bits.cuh"
#include "../ff/fr.cuh"

namespace proofrack {
namespace ntt {

constexpr int root_bits = 32; // 2-adicity of r − 1
constexpr int table_bits = 11;
constexpr int table_count = 3;
constexpr uint64_t powers_count = uint64_t{table_count} << table_bits;
constexpr int stages_max = 10; // of a pass
constexpr uint64_t base_count = uint64_t{1} << (stages_max - 1);

// The 2^32-th root of unity g, 7 to the exponent (r − 1)/2^32.
PR_FN Fr root() {
	constexpr uint32_t w[8] = {0x5f0e466a, 0xb9b58d8c, 0x1819d7ec, 0x5b1b4c80, 0x52a31e64, 0x0af53ae3, 0x19e9b27b,
		0x5bf3adda};
	Fr r;
	PR_UNROLL
	for (int i = 0; i < 8; i++)
		r.v[i] = w[i];
	return r;
}

// On the device. T[n] is g to half of n's 32 bits reversed, a square root of T[n/2] or of −T[n/2].
struct Tables {
	Fr *powers = nullptr; // g^(e·2^(11·t)), e first
	Fr *base = nullptr;   // T[i], then their inverses

	static constexpr uint64_t elements = powers_count + 2 * base_count;

	// g^e.
	PR_FN Fr power(uint32_t e) const {
		constexpr uint32_t mask = (1u << table_bits) - 1;
		// Copies, so that elements are loaded whole.
		Fr x = powers[e & mask], y = powers[(1u << table_bits) + (e >> table_bits & mask)];
		Fr z = powers[(2u << table_bits) + (e >> (2 * table_bits))];
		return x * y * z;
	}

	// T[n], or its inverse; n is below 2^31.
	PR_FN Fr twiddle(uint32_t n, bool inverse) const {
		uint32_t e = reverse_bits(n) >> 1;
		return power(inverse ? 0u - e : e);
	}

	PR_FN Fr base_twiddle(uint32_t i, bool inverse) const { return base[(inverse ? base_count : 0) + i]; }
};

struct FillPowers {
	Fr *powers;

	PR_FN void operator()(uint64_t i) const {
		uint64_t e = i & ((1u << table_bits) - 1), table = i >> table_bits;
		powers[i] = root().pow(e << (table * table_bits));
	}
};

struct FillBase {
	Tables tables;

	PR_FN void operator()(uint64_t i) const {
		bool inverse = i >= base_count;
		tables.base[i] = tables.twiddle(static_cast<uint32_t>(i % base_count), inverse);
	}
};

// Makes the tables; powers and base are given.
inline Status fill(const Stream &stream, const Tables &t) {
	PR_TRY(for_each(stream, FillPowers{t.powers}, powers_count));
	return for_each(stream, FillBase{t}, 2 * base_count);
}

} // namespace ntt
} // namespace proofrack
