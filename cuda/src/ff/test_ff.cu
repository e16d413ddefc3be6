#include "../test.h"

#include "fp2.cuh"
#include "fr.cuh"

namespace proofrack {
namespace {

// The operations, in the order of cuda/field_test.go. mul is what the library uses; mul32 and mul64 are the two ways.
template <class F>
Status field(const uint64_t *args) {
	uint64_t operation = args[0];
	const F *x = test_slice<F>(args[1]), *y = test_slice<F>(args[2]);
	F *out = test_slice<F>(args[3]);
	for (uint64_t i = 0; i < args[4]; i++) {
		switch (operation) {
		case 0: out[i] = x[i] + y[i]; break;
		case 1: out[i] = x[i] - y[i]; break;
		case 2: out[i] = x[i] * y[i]; break;
		case 3: out[i] = x[i].sqr(); break;
		case 4: out[i] = -x[i]; break;
		case 5: out[i] = x[i].dbl(); break;
		case 6: out[i] = x[i].inverse(); break;
		default:
			if constexpr (!std::is_same<F, Fp2>::value) {
				switch (operation) {
				case 7: out[i] = F::mul32(x[i], y[i]); continue;
				case 8: out[i] = F::mul64(x[i], y[i]); continue;
				case 9: out[i] = x[i].to_canonical(); continue;
				case 10: out[i] = x[i].to_montgomery(); continue;
				case 11: out[i] = x[i].pow(y[i].v[0]); continue;
				case 12: out[i] = F::from_u64(uint64_t{y[i].v[1]} << 32 | y[i].v[0]); continue;
				case 13: out[i] = x[i].times(y[i].v[0] & 15); continue;
				}
			}
			return fail(PRCUDA_ERROR_ARGUMENT, "field", "operation");
		}
	}
	return Status{};
}

} // namespace

PR_TEST_ENTRY(fr, 5) { return field<Fr>(args); }
PR_TEST_ENTRY(fp, 5) { return field<Fp>(args); }
PR_TEST_ENTRY(fp2, 5) { return field<Fp2>(args); }

} // namespace proofrack
