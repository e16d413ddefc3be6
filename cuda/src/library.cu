// The C interface (include/proofrack_cuda.h) but for proofs: version, devices, memory.

#include "handles.cuh"
#include "list.cuh"

using proofrack::guarded;
using proofrack::missing;
using proofrack::Status;
using proofrack::still_open;

extern "C" {

void prcuda_free(void *memory) { std::free(memory); }

prcuda_status prcuda_get_version(prcuda_version *out) {
	return guarded([&] {
		if (!out)
			return missing();
		std::memset(out, 0, sizeof *out);
		out->abi = PRCUDA_ABI;
		proofrack::fill_version(out);
		return Status{};
	});
}

prcuda_status prcuda_devices(prcuda_device_info *out, int32_t capacity, int32_t *count) {
	return guarded([&] {
		if (!count || (capacity > 0 && !out))
			return missing();
		*count = 0;
		std::vector<proofrack::Listed> all;
		PR_TRY(proofrack::list_devices(&all));
		*count = int32_t(all.size());
		for (size_t i = 0; i < all.size() && int32_t(i) < capacity; i++)
			out[i] = all[i].info;
		return Status{};
	});
}

prcuda_status prcuda_open(const char *uuid, const prcuda_options *options, prcuda_device **out) {
	return guarded([&] {
		if (!uuid || !options || !out)
			return missing();
		*out = nullptr;
		int ordinal = 0;
		PR_TRY(proofrack::find_device(uuid, &ordinal));
		std::unique_ptr<prcuda_device> d(new prcuda_device);
		PR_TRY(d->device.open(ordinal, options->arena_bytes, options->pinned_bytes, options->threads));
		*out = d.release();
		return Status{};
	});
}

prcuda_status prcuda_close(prcuda_device *device) {
	return guarded([&] {
		if (!device)
			return missing();
		if (device->opened.load() > 0)
			return still_open();
		delete device;
		return Status{};
	});
}

prcuda_status prcuda_get_memory(prcuda_device *device, prcuda_memory *out) {
	return guarded([&] {
		if (!device || !out)
			return missing();
		std::memset(out, 0, sizeof *out);
		PR_TRY(device->device.enter());
		PR_TRY(device->device.free_memory(&out->free_bytes, &out->total_bytes));
		out->arena_bytes = device->device.arena.bytes();
		out->arena_used = device->device.arena.used();
		out->arena_peak = device->device.arena.peak();
		out->pinned_bytes = device->device.pinned.bytes();
		return Status{};
	});
}
}
