// The processor as a device: memory is memory, and a stream does what it is told before it returns.
#pragma once

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "arena.cuh"
#include "stream.h"

namespace proofrack {

// A point in a stream's work.
class Event {
public:
	Status open() { return Status{}; }
	Status record(const Stream &) {
		at_ = std::chrono::steady_clock::now();
		return Status{};
	}
	Status wait() const { return Status{}; }
	// Seconds from an event before to this one, both over.
	Status since(const Event &before, double *seconds) const {
		*seconds = std::chrono::duration<double>(at_ - before.at_).count();
		return Status{};
	}

private:
	std::chrono::steady_clock::time_point at_;
};

inline Status stream_waits(const Stream &, const Event &) { return Status{}; }

inline Status copy_to_device(const Stream &, void *to, const void *from, uint64_t bytes) {
	if (bytes > 0)
		std::memcpy(to, from, bytes);
	return Status{};
}

inline Status copy_to_host(const Stream &stream, void *to, const void *from, uint64_t bytes) {
	return copy_to_device(stream, to, from, bytes);
}

inline Status copy_on_device(const Stream &stream, void *to, const void *from, uint64_t bytes) {
	return copy_to_device(stream, to, from, bytes);
}

inline Status fill_zero(const Stream &, void *to, uint64_t bytes) {
	if (bytes > 0)
		std::memset(to, 0, bytes);
	return Status{};
}

// All memory is as good as pinned.
inline bool pin(const void *, uint64_t) { return true; }
inline void unpin(const void *) {}

class Device {
public:
	static constexpr uint64_t arena_default = 1ull << 30;
	static constexpr uint32_t lanes_max = 256;

	Device() = default;
	Device(const Device &) = delete;
	Device &operator=(const Device &) = delete;
	~Device() { close(); }

	Status open(int, uint64_t arena_bytes, uint64_t pinned_bytes, int threads) {
		pinned_bytes = pool_bytes(pinned_bytes, &pin_budget);
		uint64_t arena_size = aligned(arena_bytes ? arena_bytes : arena_default);
		memory_ = std::malloc(arena_size);
		pinned_memory_ = std::malloc(aligned(pinned_bytes));
		if (!memory_ || !pinned_memory_) {
			close();
			return lacking(PRCUDA_ERROR_HOST_MEMORY, "take the arena", arena_size + pinned_bytes, 0);
		}
		arena.reset(memory_, arena_bytes ? arena_bytes : arena_default);
		pinned.reset(pinned_memory_, aligned(pinned_bytes));
		int cores = int(std::thread::hardware_concurrency());
		threads_ = threads > 0 ? threads : cores > 0 ? cores : 1;
		return Status{};
	}

	void close() {
		std::free(memory_);
		std::free(pinned_memory_);
		memory_ = pinned_memory_ = nullptr;
	}

	// Must be called by every thread before it uses the device.
	Status enter() const { return Status{}; }
	Status open_stream(Stream *out) const {
		out->threads = threads_;
		return Status{};
	}
	void close_stream(Stream *) const {}
	Status free_memory(uint64_t *free, uint64_t *total) const {
		*total = arena.bytes();
		*free = 0;
		return Status{};
	}

	// Threads that keep the device busy.
	uint32_t lanes() const { return lanes_max; }

	Arena arena, pinned;
	uint64_t pin_budget = 0; // bytes of callers' memory that may be pinned

private:
	void *memory_ = nullptr, *pinned_memory_ = nullptr;
	int threads_ = 1;
};

} // namespace proofrack
