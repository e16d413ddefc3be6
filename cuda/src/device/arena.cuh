// Memory that is taken once and handed out by plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "status.h"

namespace proofrack {

constexpr uint64_t kAlignBytes = 256; // of everything carved

constexpr uint64_t aligned(uint64_t bytes) { return (bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes; }

// Cuts a region into arrays. Without a region it only measures: the same steps give the size first and the addresses
// then, so that what was planned is what is used.
class Carver {
public:
	Carver() = default;
	explicit Carver(void *base) : base_(static_cast<char *>(base)) {}

	template <class T> T *take(uint64_t count) {
		uint64_t at = used_;
		used_ += aligned(count * sizeof(T));
		if (used_ > peak_)
			peak_ = used_;
		return base_ ? reinterpret_cast<T *>(base_ + at) : nullptr;
	}

	// Where the next array begins; going back to it lets arrays share memory.
	uint64_t mark() const { return used_; }
	void back(uint64_t mark) { used_ = mark; }

	// Goes on behind everything taken so far.
	void skip() { used_ = peak_; }

	// The most that was in use.
	uint64_t bytes() const { return peak_; }

private:
	char *base_ = nullptr;
	uint64_t used_ = 0, peak_ = 0;
};

// Of the host memory that may be pinned, the pool takes the first so many bytes; the rest is for pinning what callers
// have: the lists of points that are streamed.
constexpr uint64_t kPinnedPoolBytes = 128ull << 20;

// The size of the pool, and what is left for callers' memory. 0 is a pool and nothing else.
inline uint64_t pool_bytes(uint64_t pinned_bytes, uint64_t *budget) {
	*budget = pinned_bytes > kPinnedPoolBytes ? pinned_bytes - kPinnedPoolBytes : 0;
	return pinned_bytes == 0 || pinned_bytes > kPinnedPoolBytes ? kPinnedPoolBytes : pinned_bytes;
}

// A stack of regions in one block of memory: the last one taken is the first given back.
class Arena {
public:
	void reset(void *base, uint64_t bytes) {
		std::lock_guard<std::mutex> lock(mutex_);
		base_ = static_cast<char *>(base);
		bytes_ = bytes;
		used_ = peak_ = 0;
	}

	Status push(uint64_t bytes, int32_t code, const char *text, void **out) {
		std::lock_guard<std::mutex> lock(mutex_);
		uint64_t size = aligned(bytes);
		if (size > bytes_ - used_)
			return lacking(code, text, size, bytes_ - used_);
		*out = base_ + used_;
		used_ += size;
		if (used_ > peak_)
			peak_ = used_;
		return Status{};
	}

	// Gives the last region back; any other one is the caller's mistake.
	Status pop(void *region, uint64_t bytes) {
		std::lock_guard<std::mutex> lock(mutex_);
		uint64_t size = aligned(bytes);
		if (size > used_ || base_ + (used_ - size) != static_cast<char *>(region))
			return fail(PRCUDA_ERROR_ARGUMENT, "give memory back", "what was opened later is still open");
		used_ -= size;
		return Status{};
	}

	// The peak counts from now.
	void forget_peak() {
		std::lock_guard<std::mutex> lock(mutex_);
		peak_ = used_;
	}

	void *base() const { return base_; }
	uint64_t bytes() const { return bytes_; }
	uint64_t used() const {
		std::lock_guard<std::mutex> lock(mutex_);
		return used_;
	}
	uint64_t peak() const {
		std::lock_guard<std::mutex> lock(mutex_);
		return peak_;
	}

private:
	mutable std::mutex mutex_;
	char *base_ = nullptr;
	uint64_t bytes_ = 0, used_ = 0, peak_ = 0;
};

} // namespace proofrack
