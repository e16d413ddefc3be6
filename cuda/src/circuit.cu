// The C interface of circuits and proofs (include/proofrack_cuda.h): handles around the classes of prove/.

#include "handles.cuh"
#include "prove/prove.cuh"

using proofrack::guarded;
using proofrack::missing;
using proofrack::Status;
using proofrack::still_open;

struct prcuda_params {
	explicit prcuda_params(prcuda_device *on) : device(on) {}

	prcuda_device *device;
	std::unique_ptr<proofrack::Circuit> circuit;
	std::atomic<int> opened{0}; // pending proofs
};

struct prcuda_pending {
	explicit prcuda_pending(prcuda_params *of) : params(of) {}

	prcuda_params *params;
	std::unique_ptr<proofrack::Proof> proof;
};

extern "C" {

prcuda_status prcuda_plan_circuit(
	const prcuda_shape *shape, uint64_t arena_bytes, int32_t pending, prcuda_plan *out) {
	return guarded([&] {
		if (!shape || !out)
			return missing();
		std::memset(out, 0, sizeof *out);
		return proofrack::plan_circuit(*shape, arena_bytes, pending, out);
	});
}

prcuda_status prcuda_params_open(
	prcuda_device *device, const prcuda_shape *shape, const prcuda_points *points, int32_t pending, prcuda_params **out) {
	return guarded([&] {
		if (!device || !shape || !points || !out)
			return missing();
		*out = nullptr;
		std::unique_ptr<prcuda_params> p(new prcuda_params(device));
		device->device.arena.forget_peak();
		PR_TRY(proofrack::Circuit::open(device->device, *shape, *points, pending, &p->circuit));
		device->opened++;
		*out = p.release();
		return Status{};
	});
}

prcuda_status prcuda_params_close(prcuda_params *params) {
	return guarded([&] {
		if (!params)
			return missing();
		if (params->opened.load() > 0)
			return still_open();
		PR_TRY(params->circuit->close());
		params->device->opened--;
		delete params;
		return Status{};
	});
}

prcuda_status prcuda_params_plan(prcuda_params *params, prcuda_plan *out) {
	return guarded([&] {
		if (!params || !out)
			return missing();
		*out = params->circuit->plan();
		return Status{};
	});
}

prcuda_status prcuda_pending_open(prcuda_params *params, prcuda_pending **out) {
	return guarded([&] {
		if (!params || !out)
			return missing();
		*out = nullptr;
		std::unique_ptr<prcuda_pending> w(new prcuda_pending(params));
		PR_TRY(proofrack::Proof::open(*params->circuit, &w->proof));
		params->opened++;
		*out = w.release();
		return Status{};
	});
}

prcuda_status prcuda_start(prcuda_pending *pending, const void *segment, const prcuda_layout *layout) {
	return guarded([&] {
		if (!pending || !segment || !layout)
			return missing();
		return pending->proof->start(segment, *layout);
	});
}

prcuda_status prcuda_finish(prcuda_pending *pending, prcuda_sums *out) {
	return guarded([&] {
		if (!pending || !out)
			return missing();
		return pending->proof->finish(out);
	});
}

prcuda_status prcuda_get_timings(prcuda_pending *pending, prcuda_timings *out) {
	return guarded([&] {
		if (!pending || !out)
			return missing();
		std::memset(out, 0, sizeof *out);
		return pending->proof->timings(out);
	});
}

void prcuda_abort(prcuda_pending *pending) {
	if (pending)
		pending->proof->abort();
}

prcuda_status prcuda_pending_close(prcuda_pending *pending) {
	return guarded([&] {
		if (!pending)
			return missing();
		PR_TRY(pending->proof->close());
		pending->params->opened--;
		delete pending;
		return Status{};
	});
}
}
