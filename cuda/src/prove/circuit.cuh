// A circuit on a device: its parameters, its memory, and the slots of its proofs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "lane.cuh"

namespace proofrack {

class Proof;

class Circuit {
public:
	Circuit(const Circuit &) = delete;
	Circuit &operator=(const Circuit &) = delete;

	// Takes memory from the device's arenas, in one region each, and uploads what is the same for all proofs. The points
	// must stay as they are until close.
	static Status open(Device &device, const prcuda_shape &shape, const prcuda_points &points, int32_t pending,
		std::unique_ptr<Circuit> *out) {
		std::unique_ptr<Circuit> c(new Circuit(device, Shape{shape}));
		PR_TRY(device.enter());
		PR_TRY(c->shape_.check());
		Choice choice;
		uint64_t left = device.arena.bytes() - device.arena.used();
		PR_TRY(choose(c->shape_, left, pending, &choice, &c->plan_));
		PR_TRY(c->count(points));
		Status s = c->take(choice);
		if (s.ok())
			s = c->load(points, choice.resident);
		if (!s.ok()) {
			(void)c->close(); // the first error is the one to tell
			return s;
		}
		*out = std::move(c);
		return Status{};
	}

	// Gives all memory back. What was opened later must be closed before.
	Status close() {
		PR_TRY(device_.enter());
		if (taken_ != 0)
			return fail(PRCUDA_ERROR_ARGUMENT, "close parameters", "proofs are pending");
		for (auto *l : {&list_h_, &list_l_, &list_a_, &list_b1_})
			unpin_list(l);
		unpin_list(&list_b2_);
		if (pinned_) {
			PR_TRY(device_.pinned.pop(pinned_, plan_.pinned_bytes));
			pinned_ = nullptr;
		}
		if (memory_) {
			PR_TRY(device_.arena.pop(memory_, plan_.peak_bytes));
			memory_ = nullptr;
		}
		start_.close(device_);
		finish_.close(device_);
		return Status{};
	}

	const prcuda_plan &plan() const { return plan_; }

private:
	friend class Proof;

	Circuit(Device &device, const Shape &shape) : device_(device), shape_(shape) {}

	// Compares the densities with the counts and makes what depends on them.
	Status count(const prcuda_points &p) {
		if (!p.h || !p.l || !p.a || !p.b1 || !p.b2 || !p.b_inputs || (shape_.aux > 0 && (!p.a_aux || !p.b_aux)))
			return fail(PRCUDA_ERROR_ARGUMENT, "take parameters", "a pointer is NULL");
		uint32_t words = uint32_t(2 * words_of(shape_.aux));
		inputs_.assign(3 * shape_.inputs, kNoPoint);
		uint32_t b_first = 0;
		for (uint64_t i = 0; i < shape_.inputs; i++) {
			inputs_[shape_.inputs + i] = uint32_t(i); // all are in A: the appended input rows
			if (p.b_inputs[i / 64] >> (i % 64) & 1)
				inputs_[2 * shape_.inputs + i] = b_first++;
		}
		for (Query *q : {&l_, &a_, &b_})
			q->words = words;
		a_.first = uint32_t(shape_.inputs);
		b_.first = b_first;
		uint64_t a = a_.first + rank(p.a_aux, &a_.ranks), b = b_.first + rank(p.b_aux, &b_.ranks);
		if (a != shape_.a || b != shape_.b)
			return fail(PRCUDA_ERROR_ARGUMENT, "take parameters", "densities and counts of points differ");
		return Status{};
	}

	// Makes the rank index of a plane of auxiliaries, and gives the number of ones.
	uint64_t rank(const uint64_t *plane, std::vector<uint32_t> *ranks) const {
		uint64_t n = 0;
		for (uint64_t i = 0; i < words_of(shape_.aux); i++) {
			if (i % (kRankBlock / 64) == 0)
				ranks->push_back(uint32_t(n));
			n += uint64_t(__builtin_popcountll(plane[i]));
		}
		return n;
	}

	Status take(const Choice &choice) {
		PR_TRY(device_.arena.push(plan_.peak_bytes, PRCUDA_ERROR_MEMORY, "take memory for a circuit", &memory_));
		PR_TRY(device_.pinned.push(
			plan_.pinned_bytes, PRCUDA_ERROR_HOST_MEMORY, "take pinned memory for a circuit", &pinned_));
		Carver device(memory_), pinned(pinned_);
		at_ = place(shape_, choice, device, pinned);
		if (device.bytes() != plan_.peak_bytes || pinned.bytes() != plan_.pinned_bytes)
			return fail(PRCUDA_ERROR_INTERNAL, "take memory for a circuit", "it takes other than planned");
		at_.sums_h.use_lanes(device_.lanes());
		at_.sums_q.use_lanes(device_.lanes());
		at_.sums_b2.use_lanes(device_.lanes());
		start_.staging = std::move(at_.staging_start);
		finish_.staging = std::move(at_.staging_finish);
		PR_TRY(start_.open(device_));
		PR_TRY(finish_.open(device_));
		for (int i = 0; i < plan_.pending; i++)
			PR_TRY(at_.slots[i].stager.open());
		return Status{};
	}

	Status load(const prcuda_points &p, bool resident) {
		const Stream &stream = start_.work;
		Stager &stager = start_.staging.stager;
		auto upload = [&](void *to, const void *from, uint64_t bytes) { return stager.copy(stream, to, from, bytes); };
		uint64_t plane = 8 * words_of(shape_.aux), ranks = 4 * ranks_of(shape_.aux), inputs = 4 * shape_.inputs;
		PR_TRY(upload(at_.density_a, p.a_aux, plane));
		PR_TRY(upload(at_.density_b, p.b_aux, plane));
		PR_TRY(upload(at_.rank_a, a_.ranks.data(), ranks));
		PR_TRY(upload(at_.rank_b, b_.ranks.data(), ranks));
		PR_TRY(upload(at_.inputs_l, inputs_.data(), inputs));
		PR_TRY(upload(at_.inputs_a, inputs_.data() + shape_.inputs, inputs));
		PR_TRY(upload(at_.inputs_b, inputs_.data() + 2 * shape_.inputs, inputs));
		a_.density = Plane{reinterpret_cast<const uint32_t *>(at_.density_a), at_.rank_a};
		b_.density = Plane{reinterpret_cast<const uint32_t *>(at_.density_b), at_.rank_b};
		l_.inputs = at_.inputs_l;
		a_.inputs = at_.inputs_a;
		b_.inputs = at_.inputs_b;
		PR_TRY(at_.quotient.open(stream));
		list(&list_h_, p.h, at_.h, shape_.h);
		list(&list_l_, p.l, at_.l, shape_.l);
		list(&list_a_, p.a, at_.a, shape_.a);
		list(&list_b1_, p.b1, at_.b1, shape_.b);
		list(&list_b2_, p.b2, at_.b2, shape_.b);
		if (resident) {
			for (auto *l : {&list_h_, &list_l_, &list_a_, &list_b1_})
				PR_TRY(upload(l->device, l->host, l->count * sizeof(G1)));
			PR_TRY(upload(list_b2_.device, list_b2_.host, list_b2_.count * sizeof(G2)));
		}
		if (!resident) {
			pin_list(&list_h_);
			pin_list(&list_l_);
			pin_list(&list_a_);
			pin_list(&list_b1_);
			pin_list(&list_b2_);
		}
		return start_.drain();
	}

	// Pins a list that is streamed, where that is within the budget and can be had.
	template <class F> void pin_list(List<F> *l) {
		uint64_t bytes = l->count * sizeof(Affine<F>);
		if (bytes == 0 || bytes > device_.pin_budget || !pin(l->host, bytes))
			return;
		l->pinned = true;
		device_.pin_budget -= bytes;
	}

	template <class F> void unpin_list(List<F> *l) {
		if (!l->pinned)
			return;
		unpin(l->host);
		l->pinned = false;
		device_.pin_budget += l->count * sizeof(Affine<F>);
	}

	template <class F> static void list(List<F> *l, const void *host, Affine<F> *device, uint64_t count) {
		l->host = static_cast<const Affine<F> *>(host);
		l->device = device;
		l->count = uint32_t(count);
	}

	// Takes a slot, or -1.
	int take_slot() {
		std::lock_guard<std::mutex> lock(mutex_);
		for (int i = 0; i < plan_.pending; i++) {
			if (!(taken_ >> i & 1)) {
				taken_ |= 1u << i;
				return i;
			}
		}
		return -1;
	}

	void give_slot(int i) {
		std::lock_guard<std::mutex> lock(mutex_);
		taken_ &= ~(1u << i);
	}

	Device &device_;
	Shape shape_;
	prcuda_plan plan_{};
	void *memory_ = nullptr, *pinned_ = nullptr;
	Memory at_{};
	Lane start_, finish_;
	Query l_, a_, b_;
	std::vector<uint32_t> inputs_; // each input's point in L (none), A and B
	List<Fp> list_h_, list_l_, list_a_, list_b1_;
	List<Fp2> list_b2_;

	std::mutex mutex_;
	uint32_t taken_ = 0; // slots
};

} // namespace proofrack
