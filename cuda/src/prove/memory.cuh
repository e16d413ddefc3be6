// Where everything of a circuit lies, on the device and in pinned memory. One function places it all: run without
// memory it is the plan, run with memory it is what is used.
#pragma once

#include <cstdint>
#include <vector>

#include "../msm/sums.cuh"
#include "../ntt/quotient.cuh"
#include "shape.cuh"

namespace proofrack {

constexpr int kPendingMax = 8;
constexpr uint64_t kStagerBytes = 4ull << 20; // of one buffer of pinned memory
constexpr uint32_t kPassMax = 1u << 22;       // scalars that are sorted at once
constexpr uint32_t kPassMin = 1u << 12;

// How a circuit is laid out.
struct Choice {
	int pending = 1;           // slots
	bool resident = true;      // points stay on the device
	uint32_t stage = 1u << 21; // points of one chunk where they do not
};

// Memory of one proof from start to finish: the parts of its segment, and results.
struct Slot {
	void *parts[kParts]; // inputs and the list of full auxiliaries are one array
	XYZZ<Fp> *h, *l, *a, *b1;
	XYZZ<Fp2> *b2;
	Fr *top; // coefficient of the quotient that must be zero
	Stager stager;

	template <class T> T *part(PartIndex i) const { return static_cast<T *>(parts[i]); }
};

// Points of one list.
template <class F> struct List {
	const Affine<F> *host = nullptr;
	Affine<F> *device = nullptr; // null: streamed
	uint32_t count = 0;
	bool pinned = false; // by us
};

// Points that are on their way.
struct Staging {
	char *buffers[2] = {};
	uint64_t bytes = 0; // of one
	Stager stager;
};

// Memory of one circuit.
struct Memory {
	uint64_t *density_a, *density_b;
	uint32_t *rank_a, *rank_b;
	uint32_t *inputs_l, *inputs_a, *inputs_b; // the inputs' points, kNoPoint for none
	G1 *h, *l, *a, *b1;
	G2 *b2;
	Quotient quotient;
	Fr *first, *second;
	Sums<Fp> sums_h, sums_q; // over H, and over the other lists; they take turns with `second`
	Sums<Fp2> sums_b2;
	uint32_t *points_start, *points_finish; // of the full scalars
	Staging staging_start, staging_finish;
	Slot slots[kPendingMax];

	uint64_t bytes, slot_bytes, pinned_bytes;
};

// Sums over so many scalars, with buckets of at most so many bytes.
inline SumsConfig sums_config(uint64_t scalars, uint64_t point_bytes, uint64_t bytes_max) {
	SumsConfig c;
	c.window_bits = pick_window_bits(scalars, point_bytes, bytes_max);
	uint64_t pass = bytes_max / (sizeof(Entry) * Windows::of(c.window_bits).count);
	pass = pass < kPassMin ? kPassMin : pass > kPassMax ? kPassMax : pass;
	c.pass = uint32_t(scalars < 1 ? 1 : scalars < pass ? scalars : pass);
	c.lanes = Device::lanes_max;
	return c;
}

inline void place_slot(Slot &slot, const Shape &shape, Carver &device, Carver &pinned) {
	Parts parts(shape);
	char *scalars = device.take<char>(parts.all[kInputs].bytes + parts.all[kListX].bytes);
	for (int i = 0; i < kParts; i++) {
		if (i == kInputs)
			slot.parts[i] = scalars;
		else if (i == kListX)
			slot.parts[i] = scalars ? scalars + parts.all[kInputs].bytes : nullptr;
		else
			slot.parts[i] = device.take<char>(parts.all[i].bytes);
	}
	for (auto to : {&slot.h, &slot.l, &slot.a, &slot.b1})
		*to = pinned.take<XYZZ<Fp>>(Sums<Fp>::results_max);
	slot.b2 = pinned.take<XYZZ<Fp2>>(Sums<Fp2>::results_max);
	slot.top = pinned.take<Fr>(1);
	slot.stager = Stager::carve(pinned, kStagerBytes);
}

inline void place_staging(Staging &s, uint64_t bytes, Carver &device, Carver &pinned) {
	s.bytes = bytes;
	for (auto &b : s.buffers)
		b = device.take<char>(bytes);
	s.stager = Stager::carve(pinned, kStagerBytes);
}

// Places what the sums and the transforms work in. Of the two vectors only one is needed once there is a quotient.
inline void place_work(Memory &m, const Shape &shape, const Choice &choice, Carver &device, Carver &pinned) {
	uint64_t vector_bytes = kElementBytes << shape.bits();
	m.first = device.take<Fr>(shape.domain());
	uint64_t from = device.mark();
	m.second = device.take<Fr>(shape.domain());
	device.back(from);
	uint64_t third = vector_bytes / 3;
	m.sums_h = Sums<Fp>::carve(device, sums_config(shape.h, sizeof(XYZZ<Fp>), third));
	device.back(from);
	m.sums_q = Sums<Fp>::carve(device, sums_config(shape.scalars(), sizeof(XYZZ<Fp>), third));
	device.skip();
	m.sums_b2 = Sums<Fp2>::carve(device, sums_config(shape.scalars(), sizeof(XYZZ<Fp2>), vector_bytes / 16));
	m.points_start = device.take<uint32_t>(shape.scalars());
	m.points_finish = device.take<uint32_t>(shape.scalars());
	uint64_t stage = choice.resident ? 0 : choice.stage;
	place_staging(m.staging_start, stage * sizeof(G1), device, pinned);
	place_staging(m.staging_finish, stage / 2 * sizeof(G2), device, pinned);
}

// Places everything.
inline Memory place(const Shape &shape, const Choice &choice, Carver &device, Carver &pinned) {
	Memory m{};
	m.density_a = device.take<uint64_t>(words_of(shape.aux));
	m.density_b = device.take<uint64_t>(words_of(shape.aux));
	m.rank_a = device.take<uint32_t>(ranks_of(shape.aux));
	m.rank_b = device.take<uint32_t>(ranks_of(shape.aux));
	for (auto to : {&m.inputs_l, &m.inputs_a, &m.inputs_b})
		*to = device.take<uint32_t>(shape.inputs);
	m.quotient = Quotient::carve(device, shape.bits());
	if (choice.resident) {
		m.h = device.take<G1>(shape.h);
		m.l = device.take<G1>(shape.l);
		m.a = device.take<G1>(shape.a);
		m.b1 = device.take<G1>(shape.b);
		m.b2 = device.take<G2>(shape.b);
	}
	place_work(m, shape, choice, device, pinned);
	uint64_t before = device.bytes();
	for (int i = 0; i < choice.pending; i++)
		place_slot(m.slots[i], shape, device, pinned);
	m.bytes = device.bytes();
	m.slot_bytes = (m.bytes - before) / uint64_t(choice.pending);
	m.pinned_bytes = pinned.bytes();
	return m;
}

// Picks how a circuit is laid out in so many bytes, 0 for any number, and says what it takes: points on the device
// rather than streamed, but rather streamed than fewer proofs at once.
inline Status choose(const Shape &shape, uint64_t arena_bytes, int pending, Choice *choice, prcuda_plan *plan) {
	pending = pending < 1 ? 1 : pending > kPendingMax ? kPendingMax : pending;
	uint64_t least = ~0ull;
	for (int p = pending; p >= 1; p--) {
		for (uint32_t stage : {0u, 1u << 21, 1u << 18, 1u << 12}) {
			Choice c;
			c.pending = p;
			c.resident = stage == 0;
			c.stage = stage;
			Carver device, pinned;
			Memory m = place(shape, c, device, pinned);
			least = m.bytes < least ? m.bytes : least;
			if (arena_bytes != 0 && m.bytes > arena_bytes)
				continue;
			*choice = c;
			plan->peak_bytes = m.bytes;
			plan->pending_bytes = m.slot_bytes;
			plan->shared_bytes = m.bytes - m.slot_bytes * uint64_t(p);
			plan->pinned_bytes = m.pinned_bytes;
			plan->pending = p;
			plan->resident = c.resident;
			return Status{};
		}
	}
	*plan = prcuda_plan{};
	plan->peak_bytes = least;
	return lacking(PRCUDA_ERROR_MEMORY, "plan a circuit", least, arena_bytes);
}

// The plan of a circuit before anything is taken.
inline Status plan_circuit(const prcuda_shape &counts, uint64_t arena_bytes, int32_t pending, prcuda_plan *plan) {
	Shape shape{counts};
	PR_TRY(shape.check());
	Choice choice;
	return choose(shape, arena_bytes, pending, &choice, plan);
}

} // namespace proofrack
