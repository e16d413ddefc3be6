// One of the two sequences of work on a device: what start does, and what finish does. Each has its streams and events
// and takes one proof at a time; both run beside each other.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "memory.cuh"

namespace proofrack {

struct Lane {
	std::mutex turn;
	Stream work, copy;
	Event copied[2], used[2]; // of the staging buffers
	Event paced[2];
	int next_pace = 0;
	Staging staging;
	uint64_t streamed_bytes = 0; // since it was opened

	Status open(const Device &device) {
		PR_TRY(device.open_stream(&work));
		PR_TRY(device.open_stream(&copy));
		for (auto events : {copied, used, paced})
			for (int i = 0; i < 2; i++)
				PR_TRY(events[i].open());
		return staging.stager.open();
	}

	void close(const Device &device) {
		device.close_stream(&work);
		device.close_stream(&copy);
	}

	// Keeps two passes queued, so that an abort does not wait for a whole proof.
	Status pace(const std::atomic<bool> &aborted) {
		if (aborted.load())
			return fail(PRCUDA_ERROR_ABORTED, "prove", "it was aborted");
		PR_TRY(paced[next_pace].record(work));
		next_pace = 1 - next_pace;
		return paced[next_pace].wait();
	}

	// Waits until nothing is queued any more, whatever came of it.
	Status drain() {
		PR_TRY(used[0].record(copy));
		PR_TRY(used[0].wait());
		PR_TRY(paced[0].record(work));
		return paced[0].wait();
	}

	// Calls add(points on the device, index of the first, how many) for all points of a list: at once where they stay on
	// the device, else chunk by chunk, the next one on its way while one is summed.
	template <class F, class Add> Status each_chunk(const List<F> &list, Add add) {
		if (list.device || list.count == 0)
			return add(list.device, 0u, list.count);
		uint32_t chunk = uint32_t(staging.bytes / sizeof(Affine<F>));
		int at = 0;
		for (uint32_t from = 0; from < list.count; from += chunk, at = 1 - at) {
			uint32_t n = list.count - from < chunk ? list.count - from : chunk;
			uint64_t bytes = uint64_t(n) * sizeof(Affine<F>);
			PR_TRY(stream_waits(copy, used[at]));
			if (list.pinned)
				PR_TRY(copy_to_device(copy, staging.buffers[at], list.host + from, bytes));
			else
				PR_TRY(staging.stager.copy(copy, staging.buffers[at], list.host + from, bytes));
			PR_TRY(copied[at].record(copy));
			PR_TRY(stream_waits(work, copied[at]));
			PR_TRY(add(reinterpret_cast<const Affine<F> *>(staging.buffers[at]), from, n));
			PR_TRY(used[at].record(work));
			streamed_bytes += bytes;
		}
		return Status{};
	}
};

// Which variables have a point in a list, on the device and, for chunks, on the host.
struct Query {
	Plane density;
	const uint32_t *inputs = nullptr; // on the device: each input's point
	uint32_t first = 0;               // index of the first auxiliary's point
	std::vector<uint32_t> ranks;      // of the density; empty: all have one
	uint32_t words = 0;               // of the planes, of 32 bits

	// Words that have all auxiliaries with points from … from + count − 1, and maybe more.
	void range(uint32_t from, uint32_t count, uint32_t *low, uint32_t *high) const {
		uint64_t begin = from > first ? from - first : 0, end = uint64_t(from) + count;
		end = end > first ? end - first : 0;
		uint64_t lo = begin / 32, hi = (end + 31) / 32;
		if (!ranks.empty()) {
			// The last block that starts at or before the first point, the first that starts at or behind the end.
			lo = uint64_t(std::upper_bound(ranks.begin(), ranks.end(), begin) - ranks.begin());
			hi = uint64_t(std::lower_bound(ranks.begin(), ranks.end(), end) - ranks.begin());
			lo = (lo > 0 ? lo - 1 : 0) * kRankWords;
			hi *= kRankWords;
		}
		*low = uint32_t(lo < words ? lo : words);
		*high = uint32_t(hi < words ? hi : words);
	}
};

} // namespace proofrack
