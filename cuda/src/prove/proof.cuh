// One proof on a device: idle ─ start ─► started ─ finish ─► finished; a failure of either ends it.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

#include "circuit.cuh"

namespace proofrack {

class Proof {
public:
	Proof(const Proof &) = delete;
	Proof &operator=(const Proof &) = delete;

	// Takes a slot of the circuit.
	static Status open(Circuit &circuit, std::unique_ptr<Proof> *out) {
		std::unique_ptr<Proof> p(new Proof(circuit));
		PR_TRY(circuit.device_.enter());
		p->slot_ = circuit.take_slot();
		if (p->slot_ < 0)
			return fail(PRCUDA_ERROR_BUSY, "begin a proof", "as many are pending as the plan has");
		Status s = p->open_events();
		if (!s.ok()) {
			(void)p->close(); // the first error is the one to tell
			return s;
		}
		*out = std::move(p);
		return Status{};
	}

	// Gives the slot back.
	Status close() {
		if (slot_ < 0)
			return Status{};
		PR_TRY(circuit_.device_.enter());
		circuit_.device_.close_stream(&copy_);
		circuit_.give_slot(slot_);
		slot_ = -1;
		return Status{};
	}

	// Has start and finish end soon.
	void abort() { aborted_ = true; }

	Status start(const void *segment, const prcuda_layout &layout) {
		State expected = State::idle;
		if (!state_.compare_exchange_strong(expected, State::working))
			return fail(PRCUDA_ERROR_ARGUMENT, "start a proof", "it was started before");
		Status s = start_idle(segment, layout);
		state_ = s.ok() ? State::started : State::ended;
		return s;
	}

	Status finish(prcuda_sums *out) {
		State expected = State::started;
		if (!state_.compare_exchange_strong(expected, State::working))
			return fail(PRCUDA_ERROR_ARGUMENT, "finish a proof", "it is not one that is started");
		Status s = finish_started(out);
		state_ = State::ended;
		return s;
	}

	Status timings(prcuda_timings *out) const {
		if (state_ == State::working)
			return fail(PRCUDA_ERROR_ARGUMENT, "read timings", "the proof is being worked on");
		*out = timings_;
		return Status{};
	}

private:
	enum class State { idle, working, started, ended };
	enum Mark { kUpload, kUploaded, kBegin, kQuotient, kSumH, kSumL, kSumA, kSumB1, kBegin2, kSumB2, kMarks };

	explicit Proof(Circuit &circuit) : circuit_(circuit) {}

	Slot &slot() { return circuit_.at_.slots[slot_]; }

	Status open_events() {
		PR_TRY(circuit_.device_.open_stream(&copy_));
		for (Event &e : marks_)
			PR_TRY(e.open());
		return Status{};
	}

	Status start_idle(const void *segment, const prcuda_layout &layout) {
		PR_TRY(circuit_.device_.enter());
		Parts parts(circuit_.shape_);
		PR_TRY(parts.check(layout));
		Status sent = upload(parts, static_cast<const char *>(segment), layout);
		if (!sent.ok()) { // nothing may be on its way to the slot when it is given back
			PR_TRY(marks_[kUploaded].record(copy_));
			PR_TRY(marks_[kUploaded].wait());
			return sent;
		}
		Lane &lane = circuit_.start_;
		std::lock_guard<std::mutex> turn(lane.turn);
		uint64_t streamed = lane.streamed_bytes;
		Status s = start_sums(lane), drained = lane.drain(), uploaded = marks_[kUploaded].wait();
		timings_.streamed_bytes += lane.streamed_bytes - streamed;
		for (const Status &next : {s, drained, uploaded})
			PR_TRY(next);
		return take_start();
	}

	// Has the segment copied to the slot, through pinned memory; at most two buffers are on their way.
	Status upload(const Parts &parts, const char *segment, const prcuda_layout &layout) {
		PR_TRY(marks_[kUpload].record(copy_));
		for (int i = 0; i < kParts; i++) {
			const Part &p = parts.all[i];
			if (aborted_)
				return fail(PRCUDA_ERROR_ABORTED, "prove", "it was aborted");
			PR_TRY(slot().stager.copy(copy_, slot().parts[i], segment + layout.*p.offset, p.bytes));
			timings_.uploaded_bytes += p.bytes;
		}
		return marks_[kUploaded].record(copy_);
	}

	Status start_sums(Lane &lane) {
		const Stream &stream = lane.work;
		Memory &m = circuit_.at_;
		auto pace = [&] { return lane.pace(aborted_); };
		PR_TRY(pace());
		PR_TRY(stream_waits(stream, marks_[kUploaded]));
		PR_TRY(marks_[kBegin].record(stream));
		PR_TRY(m.quotient.compute(stream, evaluations(), m.first, m.second, pace));
		PR_TRY(copy_to_host(stream, slot().top, m.first + circuit_.shape_.h, sizeof(Fr)));
		PR_TRY(marks_[kQuotient].record(stream));
		PR_TRY(sum_h(lane, pace));
		PR_TRY(marks_[kSumH].record(stream));
		PR_TRY(sum_query(lane, circuit_.list_l_, circuit_.l_, m.sums_q, m.points_start, slot().l, pace));
		PR_TRY(marks_[kSumL].record(stream));
		PR_TRY(sum_query(lane, circuit_.list_a_, circuit_.a_, m.sums_q, m.points_start, slot().a, pace));
		PR_TRY(marks_[kSumA].record(stream));
		PR_TRY(sum_query(lane, circuit_.list_b1_, circuit_.b_, m.sums_q, m.points_start, slot().b1, pace));
		return marks_[kSumB1].record(stream);
	}

	Evaluations evaluations() {
		Slot &s = slot();
		Evaluations e;
		e.a0 = s.part<uint64_t>(kA0);
		e.a1 = s.part<uint64_t>(kA1);
		e.b0 = s.part<uint64_t>(kB0);
		e.a_full = s.part<uint64_t>(kAFull);
		e.b_full = s.part<uint64_t>(kBFull);
		e.rank_a = s.part<uint32_t>(kRankA);
		e.rank_b = s.part<uint32_t>(kRankB);
		e.list_a = s.part<Fr>(kListA);
		e.list_b = s.part<Fr>(kListB);
		e.rows = circuit_.shape_.rows_total();
		return e;
	}

	template <class Pace> Status sum_h(Lane &lane, Pace pace) {
		const Memory &m = circuit_.at_;
		PR_TRY(m.sums_h.begin(lane.work));
		PR_TRY(lane.each_chunk(circuit_.list_h_, [&](const G1 *points, uint32_t from, uint32_t n) {
			return m.sums_h.add(lane.work, Scalars{m.first + from, nullptr, n, 0, n}, points, pace);
		}));
		return m.sums_h.finish(lane.work, slot().h);
	}

	template <class F, class Pace>
	Status sum_query(Lane &lane, const List<F> &list, const Query &query, const Sums<F> &sums, uint32_t *points,
		XYZZ<F> *results, Pace pace) {
		const Shape &shape = circuit_.shape_;
		Slot &s = slot();
		Plane full{s.part<uint32_t>(kXFull), s.part<uint32_t>(kRankX)};
		AlignFull align{full, query.density, query.words, query.first, points + shape.inputs, uint32_t(shape.full_aux)};
		PR_TRY(copy_on_device(lane.work, points, query.inputs, shape.inputs * sizeof(uint32_t)));
		PR_TRY(launch(lane.work, align, divide_up(align.words, AlignFull::threads)));
		PR_TRY(sums.begin(lane.work));
		PR_TRY(lane.each_chunk(list, [&](const Affine<F> *bases, uint32_t from, uint32_t n) {
			uint32_t low = 0, high = 0;
			query.range(from, n, &low, &high);
			PR_TRY(sums.add_ones(lane.work, s.part<uint32_t>(kX0), query.density, low, high, query.first, bases, from, n));
			PR_TRY(pace());
			Scalars scalars{s.part<Fr>(kInputs), points, uint32_t(shape.scalars()), from, n};
			return sums.add(lane.work, scalars, bases, pace);
		}));
		return sums.finish(lane.work, results);
	}

	// What the host does with the results of start.
	Status take_start() {
		const Memory &m = circuit_.at_;
		Slot &s = slot();
		if (!s.top->is_zero())
			return fail(PRCUDA_ERROR_QUOTIENT, "compute the quotient", "its degree is too high");
		XYZZ<Fp> c = m.sums_h.result(s.h);
		c.add(m.sums_q.result(s.l));
		put(sums_.c, c);
		put(sums_.a, m.sums_q.result(s.a));
		put(sums_.b1, m.sums_q.result(s.b1));
		PR_TRY(marks_[kUploaded].since(marks_[kUpload], &timings_.upload));
		double *const parts[] = {&timings_.quotient, &timings_.h, &timings_.l, &timings_.a, &timings_.b1};
		timings_.busy = timings_.upload;
		for (int i = 0; i < 5; i++) {
			PR_TRY(marks_[kQuotient + i].since(marks_[kBegin + i], parts[i]));
			timings_.busy += *parts[i];
		}
		timings_.peak_bytes = circuit_.device_.arena.peak();
		return Status{};
	}

	template <class F, size_t N> static void put(uint8_t (&to)[N], const XYZZ<F> &sum) {
		Affine<F> p = sum.to_affine();
		static_assert(sizeof p == N, "a point as gnark-crypto has it");
		std::memcpy(to, &p, N);
	}

	Status finish_started(prcuda_sums *out) {
		PR_TRY(circuit_.device_.enter());
		Lane &lane = circuit_.finish_;
		{
			std::lock_guard<std::mutex> turn(lane.turn);
			uint64_t streamed = lane.streamed_bytes;
			Status s = finish_sums(lane), drained = lane.drain();
			timings_.streamed_bytes += lane.streamed_bytes - streamed;
			PR_TRY(s);
			PR_TRY(drained);
		}
		put(sums_.b2, circuit_.at_.sums_b2.result(slot().b2));
		PR_TRY(marks_[kSumB2].since(marks_[kBegin2], &timings_.b2));
		timings_.busy += timings_.b2;
		timings_.peak_bytes = circuit_.device_.arena.peak();
		*out = sums_;
		return Status{};
	}

	Status finish_sums(Lane &lane) {
		Memory &m = circuit_.at_;
		auto pace = [&] { return lane.pace(aborted_); };
		PR_TRY(pace());
		PR_TRY(marks_[kBegin2].record(lane.work));
		PR_TRY(sum_query(lane, circuit_.list_b2_, circuit_.b_, m.sums_b2, m.points_finish, slot().b2, pace));
		return marks_[kSumB2].record(lane.work);
	}

	Circuit &circuit_;
	int slot_ = -1;
	Stream copy_;
	Event marks_[kMarks];
	std::atomic<State> state_{State::idle};
	std::atomic<bool> aborted_{false};
	prcuda_sums sums_{};
	prcuda_timings timings_{};
};

} // namespace proofrack
