// Streams and events: an order of work on a device. On the host everything is done at once, by the calling thread and
// its helpers, so that a stream is nothing but how many of them there are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "status.h"

#ifndef PROOFRACK_HOST
#include <cuda_runtime.h>
#endif

namespace proofrack {

#ifdef PROOFRACK_HOST

struct Stream {
	int threads = 1; // that blocks are shared out over
};

#else

struct Stream {
	cudaStream_t handle = nullptr;
};

// What the CUDA runtime said, as a status.
inline Status cuda_status(cudaError_t e, const char *text) {
	if (e == cudaSuccess)
		return Status{};
	int32_t code = e == cudaErrorMemoryAllocation ? PRCUDA_ERROR_MEMORY : PRCUDA_ERROR_DEVICE;
	return fail(code, text, cudaGetErrorString(e));
}

#endif

} // namespace proofrack
