// Test entries of the sums (../../internal/entry says how they are called).

#include <memory>
#include <vector>

#include "../test.h"
#include "sums.cuh"

using namespace proofrack;

namespace {

// Sums scalars[i] · points[indices[i]] and the points of the ones, chunk points at a time.
template <class F> Status sum(const uint64_t *args) {
	Scalars scalars{test_slice<const Fr>(args[0]), test_slice<const uint32_t>(args[1]), uint32_t(args[2]), 0, 0};
	auto *points = test_slice<const Affine<F>>(args[3]);
	uint32_t point_count = uint32_t(args[4]);
	auto *ones = test_slice<const uint32_t>(args[5]);
	Plane density{test_slice<const uint32_t>(args[6]), test_slice<const uint32_t>(args[7])};
	uint32_t words = uint32_t(args[8]), first = uint32_t(args[9]), chunk = uint32_t(args[13]);
	SumsConfig config{uint32_t(args[10]), uint32_t(args[11]), uint32_t(args[12])};

	Carver measure;
	(void)Sums<F>::carve(measure, config);
	auto memory = std::make_unique<char[]>(measure.bytes());
	std::memset(memory.get(), 0xa5, measure.bytes()); // nothing may be taken for cleared
	Carver carver(memory.get());
	auto sums = Sums<F>::carve(carver, config);
	Stream stream;
	stream.threads = 2;
	PR_TRY(sums.begin(stream));
	for (uint32_t from = 0; from < point_count; from += chunk) {
		uint32_t n = point_count - from < chunk ? point_count - from : chunk;
		scalars.base = from;
		scalars.point_count = n;
		PR_TRY(sums.add(stream, scalars, points + from, [] { return Status{}; }));
		PR_TRY(sums.add_ones(stream, ones, density, 0, words, first, points + from, from, n));
	}
	std::vector<XYZZ<F>> results(sums.results());
	PR_TRY(sums.finish(stream, results.data()));
	*test_slice<Affine<F>>(args[14]) = sums.result(results.data()).to_affine();
	return Status{};
}

} // namespace

PR_TEST_ENTRY(sum_g1, 15) { return sum<Fp>(args); }

PR_TEST_ENTRY(sum_g2, 15) { return sum<Fp2>(args); }

// values, their count, one word for the sum of all.
PR_TEST_ENTRY(scan, 3) {
	uint32_t count = uint32_t(args[1]);
	std::vector<uint32_t> scratch(scan_scratch(count));
	return scan(Stream{}, test_slice<uint32_t>(args[0]), count, scratch.data(), test_slice<uint32_t>(args[2]));
}

// Two planes with their rank indices, their words, the index of the first variable's point, the result, its length.
PR_TEST_ENTRY(align, 8) {
	AlignFull kernel{{test_slice<const uint32_t>(args[0]), test_slice<const uint32_t>(args[1])},
		{test_slice<const uint32_t>(args[2]), test_slice<const uint32_t>(args[3])}, uint32_t(args[4]), uint32_t(args[5]),
		test_slice<uint32_t>(args[6]), uint32_t(args[7])};
	return launch(Stream{}, kernel, divide_up(kernel.words, AlignFull::threads));
}

// The digits of a scalar in Montgomery form: scalar, window bits, sizes, signs.
PR_TEST_ENTRY(digits, 4) {
	Windows windows = Windows::of(uint32_t(args[1]));
	Scalars scalars{test_slice<const Fr>(args[0]), nullptr, 1, 0, 1};
	uint32_t s[kScalarLimbs];
	scalars.prepared(0, windows, s);
	for (uint32_t w = 0; w < windows.count; w++) {
		bool negative;
		test_slice<uint32_t>(args[2])[w] = windows.digit(s, w, negative);
		test_slice<uint32_t>(args[3])[w] = negative;
	}
	return Status{};
}
