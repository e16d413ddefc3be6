// A device with its memory: one arena on the device and one of pinned host memory, both taken when it is opened. One
// interface, two implementations: the CUDA runtime (device_gpu.cuh) and the processor (device_host.cuh).
//
// Copies and kernels of one stream happen in order. Nothing waits for a device as a whole: a thread waits for an event.
// The host implementation does everything at once, so that its events are always over.
#pragma once

#include <cstring>

#include "arena.cuh"
#include "stream.h"

#ifdef PROOFRACK_HOST
#include "device_host.cuh"
#else
#include "device_gpu.cuh"
#endif

namespace proofrack {

// Copies through pinned memory, for host memory that is not pinned itself: two buffers take turns.
class Stager {
public:
	static Stager carve(Carver &pinned, uint64_t buffer_bytes) {
		Stager s;
		s.bytes_ = buffer_bytes;
		for (auto &b : s.buffers_)
			b = pinned.take<char>(buffer_bytes);
		return s;
	}

	Status open() {
		for (auto &e : events_)
			PR_TRY(e.open());
		return Status{};
	}

	Status copy(const Stream &stream, void *to, const void *from, uint64_t bytes) {
		char *target = static_cast<char *>(to);
		const char *source = static_cast<const char *>(from);
		while (bytes > 0) {
			uint64_t n = bytes < bytes_ ? bytes : bytes_;
			PR_TRY(events_[next_].wait());
			std::memcpy(buffers_[next_], source, n);
			PR_TRY(copy_to_device(stream, target, buffers_[next_], n));
			PR_TRY(events_[next_].record(stream));
			next_ = 1 - next_;
			target += n;
			source += n;
			bytes -= n;
		}
		return Status{};
	}

private:
	uint64_t bytes_ = 0;
	char *buffers_[2] = {};
	Event events_[2];
	int next_ = 0;
};

} // namespace proofrack
