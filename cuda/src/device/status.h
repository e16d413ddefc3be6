// Status is how everything but the C interface itself reports what went wrong.
#pragma once

#include <cstdint>

#include "../../include/proofrack_cuda.h"

namespace proofrack {

// A code of the C interface with static texts. Nothing is allocated, so that running out of memory can be reported.
struct [[nodiscard]] Status {
	int32_t code = PRCUDA_OK;
	const char *text = nullptr;   // what was being done, static
	const char *detail = nullptr; // what the runtime said, static
	uint64_t need = 0, have = 0;  // bytes, when code is one of the two for memory

	bool ok() const { return code == PRCUDA_OK; }
};

inline Status fail(int32_t code, const char *text, const char *detail = nullptr) {
	return Status{code, text, detail, 0, 0};
}

inline Status lacking(int32_t code, const char *text, uint64_t need, uint64_t have) {
	return Status{code, text, nullptr, need, have};
}

} // namespace proofrack

// Returns from the enclosing function with a status that is not OK.
#define PR_TRY(expression)                                      \
	do {                                                        \
		if (::proofrack::Status pr_try_ = (expression); !pr_try_.ok()) \
			return pr_try_;                                     \
	} while (0)
