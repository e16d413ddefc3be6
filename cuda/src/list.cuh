// Which devices there are, and why none.
#pragma once

#include <cstdio>
#include <cstring>
#include <vector>

#include "device/status.h"
#include "device/stream.h"

#ifdef PROOFRACK_HOST
#include <unistd.h>
#endif

namespace proofrack {

struct Listed {
	prcuda_device_info info;
	int ordinal; // of the runtime, for this process only
};

template <size_t N> void set_text(char (&to)[N], const char *from) { std::snprintf(to, N, "%s", from); }

#ifdef PROOFRACK_HOST

inline void fill_version(prcuda_version *out) {
	out->host = 1;
	set_text(out->architectures, "host");
}

// The processor is one device, with the host's memory.
inline Status list_devices(std::vector<Listed> *out) {
	Listed d{};
	set_text(d.info.uuid, "host");
	set_text(d.info.name, "processor (host-compiled device code)");
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE), cores = sysconf(_SC_NPROCESSORS_ONLN);
	d.info.memory_bytes = pages > 0 && page > 0 ? uint64_t(pages) * uint64_t(page) : 0;
	d.info.multiprocessors = cores > 0 ? int32_t(cores) : 1;
	out->push_back(d);
	return Status{};
}

#else

inline void fill_version(prcuda_version *out) {
	int runtime = 0, driver = 0;
	if (cudaRuntimeGetVersion(&runtime) == cudaSuccess)
		out->runtime = runtime;
	if (cudaDriverGetVersion(&driver) == cudaSuccess)
		out->driver = driver;
	set_text(out->architectures, PROOFRACK_ARCHS);
}

// What keeps the runtime from having devices.
inline Status no_devices(cudaError_t e) {
	int driver = 0;
	switch (e) {
	case cudaErrorNoDevice:
		return fail(PRCUDA_ERROR_NO_DEVICE, "count devices", "the driver has none for this process");
	case cudaErrorInsufficientDriver:
	case cudaErrorStubLibrary:
	case cudaErrorCompatNotSupportedOnDevice:
	case cudaErrorSystemDriverMismatch:
		if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
			return fail(PRCUDA_ERROR_NO_DRIVER, "find the driver", "there is none (libcuda.so.1)");
		return fail(PRCUDA_ERROR_OLD_DRIVER, "use the driver", "it is older than this library's CUDA runtime");
	default:
		return cuda_status(e, "count devices");
	}
}

inline Status list_devices(std::vector<Listed> *out) {
	int count = 0;
	cudaError_t e = cudaGetDeviceCount(&count);
	if (e != cudaSuccess)
		return no_devices(e);
	for (int i = 0; i < count; i++) {
		cudaDeviceProp p;
		PR_TRY(cuda_status(cudaGetDeviceProperties(&p, i), "ask for a device's properties"));
		Listed d{};
		d.ordinal = i;
		const unsigned char *u = reinterpret_cast<const unsigned char *>(p.uuid.bytes);
		std::snprintf(d.info.uuid, sizeof d.info.uuid,
			"GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2], u[3], u[4], u[5],
			u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
		set_text(d.info.name, p.name);
		std::snprintf(d.info.pci, sizeof d.info.pci, "%04x:%02x:%02x.0", p.pciDomainID, p.pciBusID, p.pciDeviceID);
		d.info.memory_bytes = p.totalGlobalMem;
		d.info.major = p.major;
		d.info.minor = p.minor;
		d.info.multiprocessors = p.multiProcessorCount;
		int clock = 0;
		if (cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, i) == cudaSuccess)
			d.info.clock_khz = clock;
		out->push_back(d);
	}
	return Status{};
}

#endif

// The part of a UUID that tells devices apart: the runtime calls a slice of a GPU "GPU-", its driver "MIG-".
inline const char *uuid_tail(const char *uuid) {
	return std::strncmp(uuid, "GPU-", 4) == 0 || std::strncmp(uuid, "MIG-", 4) == 0 ? uuid + 4 : uuid;
}

inline Status find_device(const char *uuid, int *ordinal) {
	std::vector<Listed> all;
	PR_TRY(list_devices(&all));
	for (const Listed &d : all) {
		if (std::strcmp(uuid_tail(d.info.uuid), uuid_tail(uuid)) == 0) {
			*ordinal = d.ordinal;
			return Status{};
		}
	}
	return fail(PRCUDA_ERROR_NO_DEVICE, "find the device", "none has that UUID");
}

} // namespace proofrack
