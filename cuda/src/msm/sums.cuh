// Sums over lists of points that come chunk by chunk: of scalar multiples (Pippenger's method) and under a bitmap.
//
//	begin ─► add, for each chunk of points ─► finish ─► (on the host, when the stream is done) result
//
// A Sums has all the memory it uses from the start; see carve. Buckets and partial sums persist over chunks. Nothing
// here waits for the device.
#pragma once

#include <cstdint>

#include "../device/device.cuh"
#include "ones.cuh"
#include "reduce.cuh"
#include "scan.cuh"

namespace proofrack {

constexpr uint32_t kPieceShare = 16; // pieces of one thread
constexpr uint32_t kEntriesMin = 8;  // of one thread, below which there are fewer threads

// What a Sums is made for.
struct SumsConfig {
	uint32_t window_bits = 0; // of Pippenger's method
	uint32_t pass = 0;        // scalars that are sorted at once
	uint32_t lanes = 0;       // threads that add at once
};

// Picks the window with the least work for so many full scalars: an addition to a bucket takes 10 multiplications, and
// the reduction of a bucket about 2.5 of 14. Buckets take at most bytes_max, unless even the smallest window does not.
inline uint32_t pick_window_bits(uint64_t scalars, uint64_t bucket_bytes, uint64_t bytes_max) {
	uint32_t best = kWindowBitsMin;
	uint64_t best_cost = 0;
	for (uint32_t bits = kWindowBitsMin; bits <= kWindowBitsMax; bits++) {
		Windows w = Windows::of(bits);
		if (bits > kWindowBitsMin && w.keys() * bucket_bytes > bytes_max)
			break;
		uint64_t cost = 10 * scalars * w.count + 35 * uint64_t(w.keys());
		if (bits == kWindowBitsMin || cost < best_cost) {
			best = bits;
			best_cost = cost;
		}
	}
	return best;
}

template <class F> class Sums {
public:
	using Point = XYZZ<F>;

	// Takes the memory; the same steps with a measuring carver give the plan.
	static Sums carve(Carver &carver, const SumsConfig &config) {
		Sums s;
		s.config_ = config;
		s.windows_ = Windows::of(config.window_bits);
		uint32_t keys = s.windows_.keys(), pieces = config.lanes, fewer = divide_up(pieces, kPieceShare);
		s.counts_ = carver.take<uint32_t>(keys);
		s.scan_scratch_ = carver.take<uint32_t>(scan_scratch(keys));
		s.total_ = carver.take<uint32_t>(1);
		s.entries_ = carver.take<Entry>(uint64_t(config.pass) * s.windows_.count);
		s.buckets_ = carver.take<Point>(keys);
		s.piece_keys_[0] = carver.take<uint32_t>(pieces);
		s.piece_keys_[1] = carver.take<uint32_t>(fewer);
		s.piece_sums_[0] = carver.take<Point>(pieces);
		s.piece_sums_[1] = carver.take<Point>(fewer);
		uint32_t shares = divide_up(s.windows_.buckets(), kBucketShare);
		s.reduced_ = carver.take<Point>(uint64_t(s.windows_.count) * shares);
		s.reduce_scratch_ = carver.take<Point>(sum_scratch(s.windows_.count, shares));
		s.ones_ = carver.take<Point>(config.lanes);
		s.ones_scratch_ = carver.take<Point>(sum_scratch(1, config.lanes));
		return s;
	}

	// Has fewer threads add at once than there is memory for.
	void use_lanes(uint32_t lanes) {
		if (lanes < config_.lanes)
			config_.lanes = lanes;
	}

	const Windows &windows() const { return windows_; }

	// Points that finish copies to the host: one for each window, then that of the bitmap.
	uint32_t results() const { return windows_.count + 1; }
	static constexpr uint32_t results_max = kScalarBits / kWindowBitsMin + 1;

	Status begin(const Stream &stream) const {
		PR_TRY(launch(stream, ClearSums<F>{buckets_, windows_.keys()}, divide_up(windows_.keys(), 256)));
		return launch(stream, ClearSums<F>{ones_, config_.lanes}, divide_up(config_.lanes, 256));
	}

	// Adds scalar · point for all scalars whose points are at hand. pace is called after each pass.
	template <class Pace>
	Status add(const Stream &stream, const Scalars &scalars, const Affine<F> *points, Pace pace) const {
		for (uint32_t from = 0; from < scalars.count; from += config_.pass) {
			uint32_t length = scalars.count - from < config_.pass ? scalars.count - from : config_.pass;
			PR_TRY(add_pass(stream, scalars.from(from, length), points));
			PR_TRY(pace());
		}
		return Status{};
	}

	// Adds the points at hand of the variables that are set in ones, within words from … to of the planes.
	Status add_ones(const Stream &stream, const uint32_t *ones, const Plane &density, uint32_t from, uint32_t to,
		uint32_t first, const Affine<F> *points, uint32_t base, uint32_t count) const {
		if (from >= to)
			return Status{};
		AddOnes<F> kernel{ones, density, from, to, first, points, base, count, ones_, config_.lanes};
		return launch(stream, kernel, divide_up(config_.lanes, AddOnes<F>::threads));
	}

	// Has the sums copied to results() points of pinned host memory.
	Status finish(const Stream &stream, Point *results) const {
		uint32_t shares = divide_up(windows_.buckets(), kBucketShare);
		ReduceBuckets<F> reduce{buckets_, windows_.count, windows_.buckets(), shares, reduced_};
		PR_TRY(launch(stream, reduce, divide_up(windows_.count * shares, ReduceBuckets<F>::threads)));
		const Point *sums = nullptr;
		PR_TRY(sum_groups<F>(stream, reduced_, windows_.count, shares, reduce_scratch_, &sums));
		PR_TRY(copy_to_host(stream, results, sums, windows_.count * sizeof(Point)));
		PR_TRY(sum_groups<F>(stream, ones_, 1, config_.lanes, ones_scratch_, &sums));
		return copy_to_host(stream, results + windows_.count, sums, sizeof(Point));
	}

	// Puts the results together.
	Point result(const Point *results) const {
		Point sum = Point::infinity();
		for (uint32_t w = windows_.count; w-- > 0;) {
			for (uint32_t i = 0; i < windows_.bits; i++)
				sum = sum.dbl();
			sum.add(results[w]);
		}
		sum.add(results[windows_.count]);
		return sum;
	}

private:
	Status add_pass(const Stream &stream, const Scalars &scalars, const Affine<F> *points) const {
		uint32_t blocks = divide_up(scalars.count, CountDigits::threads), keys = windows_.keys();
		PR_TRY(fill_zero(stream, counts_, keys * sizeof(uint32_t)));
		PR_TRY(launch(stream, CountDigits{scalars, windows_, counts_}, blocks));
		PR_TRY(scan(stream, counts_, keys, scan_scratch_, total_));
		PR_TRY(launch(stream, PlaceDigits{scalars, windows_, counts_, entries_}, blocks));
		uint64_t wanted = (uint64_t(scalars.count) * windows_.count + kEntriesMin - 1) / kEntriesMin;
		uint32_t shares = wanted < config_.lanes ? uint32_t(wanted) : config_.lanes;
		return accumulate(stream, PointItems<F>{entries_, points}, shares);
	}

	Status accumulate(const Stream &stream, const PointItems<F> &items, uint32_t shares) const {
		bool single = shares == 1;
		Accumulate<F, PointItems<F>> first{items, total_, 0, shares, buckets_, single ? nullptr : piece_keys_[0],
			single ? nullptr : piece_sums_[0]};
		PR_TRY(launch(stream, first, divide_up(shares, first.threads)));
		for (int at = 0; shares > 1; at = 1 - at) {
			uint32_t pieces = shares;
			shares = divide_up(pieces, kPieceShare);
			single = shares == 1;
			Accumulate<F, PieceItems<F>> next{{piece_keys_[at], piece_sums_[at]}, nullptr, pieces, shares, buckets_,
				single ? nullptr : piece_keys_[1 - at], single ? nullptr : piece_sums_[1 - at]};
			PR_TRY(launch(stream, next, divide_up(shares, next.threads)));
		}
		return Status{};
	}

	SumsConfig config_;
	Windows windows_;
	uint32_t *counts_ = nullptr, *scan_scratch_ = nullptr, *total_ = nullptr;
	Entry *entries_ = nullptr;
	Point *buckets_ = nullptr;
	uint32_t *piece_keys_[2] = {};
	Point *piece_sums_[2] = {};
	Point *reduced_ = nullptr, *reduce_scratch_ = nullptr;
	Point *ones_ = nullptr, *ones_scratch_ = nullptr;
};

} // namespace proofrack
