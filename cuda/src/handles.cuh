// Handles of the C interface, and its statuses.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "device/device.cuh"
#include "device/status.h"

struct prcuda_device {
	proofrack::Device device;
	std::atomic<int> opened{0}; // parameters
};

namespace proofrack {

// A status with its message in memory of its own. Where there is none, the code must do.
inline prcuda_status give(const Status &s) {
	if (s.ok())
		return prcuda_status{PRCUDA_OK, nullptr};
	char text[512];
	int n = std::snprintf(text, sizeof text, "%s", s.text ? s.text : "work");
	auto add = [&](const char *format, auto... values) {
		if (n >= 0 && size_t(n) < sizeof text)
			n += std::snprintf(text + n, sizeof text - size_t(n), format, values...);
	};
	if (s.detail)
		add(": %s", s.detail);
	if (s.need > 0)
		add(": need %llu bytes, have %llu", (unsigned long long)s.need, (unsigned long long)s.have);
	return prcuda_status{s.code, strdup(text)};
}

// Runs what may throw for want of memory, the only thing that anything here throws for.
template <class F> prcuda_status guarded(F &&run) {
	try {
		return give(run());
	} catch (const std::bad_alloc &) {
		return give(fail(PRCUDA_ERROR_HOST_MEMORY, "allocate", "the host has no memory"));
	} catch (...) {
		return give(fail(PRCUDA_ERROR_INTERNAL, "work", "an exception came out"));
	}
}

inline Status missing() { return fail(PRCUDA_ERROR_ARGUMENT, "take arguments", "a pointer is NULL"); }

inline Status still_open() {
	return fail(PRCUDA_ERROR_ARGUMENT, "close", "what was opened with it is still open");
}

} // namespace proofrack
