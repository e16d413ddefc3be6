// Entries for tests, in the host-compiled library only; cuda/internal/entry calls them by name. Files of entries are
// named test*.cu, so that builds for GPUs leave them out. An argument is a whole number or the address of a slice.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device/status.h"

// Defines prcuda_test_NAME. The body returns a Status; args are the arguments, count says how many there are.
#define PR_TEST_ENTRY(name, expected)                                                                                  \
	static ::proofrack::Status pr_test_##name(const uint64_t *args);                                                   \
	extern "C" PRCUDA_API prcuda_status prcuda_test_##name(const uint64_t *args, int32_t count) {                      \
		if (count != (expected))                                                                                       \
			return ::proofrack::test_status(::proofrack::fail(PRCUDA_ERROR_ARGUMENT, #name, "number of arguments"));   \
		return ::proofrack::test_status(pr_test_##name(args));                                                         \
	}                                                                                                                  \
	static ::proofrack::Status pr_test_##name(const uint64_t *args)

namespace proofrack {

// The status as the C interface has it.
inline prcuda_status test_status(const Status &s) {
	if (s.ok())
		return prcuda_status{PRCUDA_OK, nullptr};
	const char *text = s.text == nullptr ? "" : s.text, *detail = s.detail == nullptr ? "" : s.detail;
	size_t bytes = std::strlen(text) + std::strlen(detail) + 64;
	char *message = static_cast<char *>(std::malloc(bytes));
	if (message != nullptr)
		std::snprintf(message, bytes, "%s: %s (need %llu, have %llu)", text, detail,
			static_cast<unsigned long long>(s.need), static_cast<unsigned long long>(s.have));
	return prcuda_status{s.code, message};
}

// The slice an argument is the address of.
template <class T>
T *test_slice(uint64_t arg) {
	return reinterpret_cast<T *>(static_cast<uintptr_t>(arg));
}

} // namespace proofrack
