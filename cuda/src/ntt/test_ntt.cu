#include <memory>
#include <new>

#include "../test.h"

#include "quotient.cuh"

namespace proofrack {
namespace {

Status no_pace() { return Status{}; }

// Makes a domain with tables in fresh memory.
Status prepare(const Stream &stream, int bits, std::unique_ptr<Fr[]> *memory, Quotient *out) {
	Carver measure;
	(void)Quotient::carve(measure, bits);
	memory->reset(new (std::nothrow) Fr[measure.bytes() / sizeof(Fr)]);
	if (*memory == nullptr)
		return fail(PRCUDA_ERROR_HOST_MEMORY, "prepare transforms");
	Carver device(memory->get());
	*out = Quotient::carve(device, bits);
	return out->open(stream);
}

} // namespace

// x, bits, whether it is the coset, whether it is from values to coefficients, threads.
PR_TEST_ENTRY(ntt, 5) {
	Stream stream;
	stream.threads = static_cast<int>(args[4]);
	Quotient q;
	std::unique_ptr<Fr[]> memory;
	PR_TRY(prepare(stream, static_cast<int>(args[1]), &memory, &q));
	Fr *x = test_slice<Fr>(args[0]);
	if (args[3] != 0)
		return q.domain().interpolate(stream, x, args[2] != 0, no_pace);
	return q.domain().evaluate(stream, x, args[2] != 0, no_pace);
}

// bits, and a slice for the number of stages of each pass, of 8.
PR_TEST_ENTRY(ntt_passes, 2) {
	ntt::Domain d;
	d.bits = static_cast<int>(args[0]);
	int32_t *out = test_slice<int32_t>(args[1]);
	for (int i = 0; i < 8; i++)
		out[i] = i < d.passes() ? d.stages(i) : 0;
	return Status{};
}

namespace {

// Arguments from the third on: a0, a1, b0, a_full, b_full, rank_a, rank_b, list_a, list_b, rows.
Evaluations evaluations(const uint64_t *args) {
	Evaluations e;
	e.a0 = test_slice<uint64_t>(args[0]);
	e.a1 = test_slice<uint64_t>(args[1]);
	e.b0 = test_slice<uint64_t>(args[2]);
	e.a_full = test_slice<uint64_t>(args[3]);
	e.b_full = test_slice<uint64_t>(args[4]);
	e.rank_a = test_slice<uint32_t>(args[5]);
	e.rank_b = test_slice<uint32_t>(args[6]);
	e.list_a = test_slice<Fr>(args[7]);
	e.list_b = test_slice<Fr>(args[8]);
	e.rows = args[9];
	return e;
}

} // namespace

// Which vector, out, the evaluations, bits.
PR_TEST_ENTRY(expand, 13) {
	Stream stream;
	stream.threads = 2;
	Evaluations e = evaluations(args + 2);
	Fr *out = test_slice<Fr>(args[1]);
	int bits = static_cast<int>(args[12]);
	switch (args[0]) {
	case 0: return expand_a(stream, e, bits, out);
	case 1: return expand_b(stream, e, bits, out);
	case 2: return expand_c(stream, e, bits, out);
	}
	return fail(PRCUDA_ERROR_ARGUMENT, "expand", "vector");
}

// Calls of pace after which it fails (0: never), out (of twice the domain's size), the evaluations, bits.
PR_TEST_ENTRY(quotient, 13) {
	Stream stream;
	stream.threads = 2;
	int bits = static_cast<int>(args[12]);
	Quotient q;
	std::unique_ptr<Fr[]> memory;
	PR_TRY(prepare(stream, bits, &memory, &q));
	Fr *out = test_slice<Fr>(args[1]);
	uint64_t calls = 0;
	auto pace = [&] { return ++calls == args[0] ? fail(PRCUDA_ERROR_ABORTED, "quotient", "pace") : Status{}; };
	return q.compute(stream, evaluations(args + 2), out, out + (uint64_t{1} << bits), pace);
}

} // namespace proofrack
