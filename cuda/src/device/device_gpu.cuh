// A GPU by the CUDA runtime.
#pragma once

#include <cstring>
#include <cuda_runtime.h>

#include "arena.cuh"
#include "stream.h"

namespace proofrack {

// A point in a stream's work. Waiting for it does not spin.
class Event {
public:
	Event() = default;
	Event(const Event &) = delete;
	Event &operator=(const Event &) = delete;
	Event(Event &&other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
	Event &operator=(Event &&other) noexcept {
		cudaEvent_t mine = handle_;
		handle_ = other.handle_;
		other.handle_ = mine;
		return *this;
	}
	~Event() {
		if (handle_)
			(void)cudaEventDestroy(handle_); // nothing can be done about an error here
	}

	Status open() { return cuda_status(cudaEventCreateWithFlags(&handle_, cudaEventBlockingSync), "create an event"); }
	Status record(const Stream &s) { return cuda_status(cudaEventRecord(handle_, s.handle), "record an event"); }
	Status wait() const { return cuda_status(cudaEventSynchronize(handle_), "wait for the device"); }
	// Seconds from an event before to this one, both over.
	Status since(const Event &before, double *seconds) const {
		float milliseconds = 0;
		PR_TRY(cuda_status(cudaEventElapsedTime(&milliseconds, before.handle_, handle_), "read an event's time"));
		*seconds = milliseconds * 1e-3;
		return Status{};
	}

	cudaEvent_t handle() const { return handle_; }

private:
	cudaEvent_t handle_ = nullptr;
};

inline Status stream_waits(const Stream &stream, const Event &event) {
	return cuda_status(cudaStreamWaitEvent(stream.handle, event.handle(), 0), "order two streams");
}

inline Status copy_to_device(const Stream &stream, void *to, const void *from, uint64_t bytes) {
	return cuda_status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream.handle), "copy to the device");
}

inline Status copy_to_host(const Stream &stream, void *to, const void *from, uint64_t bytes) {
	return cuda_status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream.handle), "copy from the device");
}

inline Status copy_on_device(const Stream &stream, void *to, const void *from, uint64_t bytes) {
	return cuda_status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream.handle), "copy on the device");
}

inline Status fill_zero(const Stream &stream, void *to, uint64_t bytes) {
	return cuda_status(cudaMemsetAsync(to, 0, bytes, stream.handle), "clear memory of the device");
}

// Pins memory of the caller; false where that cannot be had: then copies go through a Stager.
inline bool pin(const void *memory, uint64_t bytes) {
	cudaError_t e = cudaHostRegister(const_cast<void *>(memory), bytes, cudaHostRegisterPortable | cudaHostRegisterReadOnly);
	if (e != cudaSuccess)
		(void)cudaGetLastError(); // it is remembered otherwise
	return e == cudaSuccess;
}

inline void unpin(const void *memory) {
	if (cudaHostUnregister(const_cast<void *>(memory)) != cudaSuccess)
		(void)cudaGetLastError();
}

class Device {
public:
	// Left to the driver and to other users when all memory is wanted.
	static constexpr uint64_t spare_bytes = 256ull << 20;
	static constexpr uint32_t lanes_per_multiprocessor = 512;
	static constexpr uint32_t lanes_max = 192 * lanes_per_multiprocessor; // what plans count on

	Device() = default;
	Device(const Device &) = delete;
	Device &operator=(const Device &) = delete;
	~Device() { close(); }

	// Opens the device with that number of the runtime; arena_bytes of 0 are all that is free.
	Status open(int number, uint64_t arena_bytes, uint64_t pinned_bytes, int) {
		number_ = number;
		pinned_bytes = pool_bytes(pinned_bytes, &pin_budget);
		PR_TRY(enter());
		uint64_t free = 0, total = 0;
		PR_TRY(free_memory(&free, &total));
		if (arena_bytes == 0)
			arena_bytes = free > spare_bytes ? free - spare_bytes : 0;
		if (arena_bytes > free)
			return lacking(PRCUDA_ERROR_MEMORY, "take the arena", arena_bytes, free);
		cudaDeviceProp properties;
		PR_TRY(cuda_status(cudaGetDeviceProperties(&properties, number), "ask for the device's properties"));
		uint32_t lanes = uint32_t(properties.multiProcessorCount) * lanes_per_multiprocessor;
		lanes_ = lanes < lanes_max ? lanes : lanes_max;
		Status s = cuda_status(cudaMalloc(&memory_, arena_bytes), "take the arena");
		if (s.ok()) {
			s = cuda_status(cudaHostAlloc(&pinned_memory_, pinned_bytes, cudaHostAllocPortable), "pin host memory");
			if (s.code == PRCUDA_ERROR_MEMORY)
				s = lacking(PRCUDA_ERROR_HOST_MEMORY, "pin host memory", pinned_bytes, 0);
		}
		if (!s.ok()) {
			(void)cudaGetLastError(); // it is remembered otherwise
			close();
			return s;
		}
		arena.reset(memory_, arena_bytes);
		pinned.reset(pinned_memory_, pinned_bytes);
		return Status{};
	}

	void close() {
		if (number_ < 0 || cudaSetDevice(number_) != cudaSuccess)
			return;
		if (memory_)
			(void)cudaFree(memory_); // nothing can be done about an error here
		if (pinned_memory_)
			(void)cudaFreeHost(pinned_memory_);
		memory_ = pinned_memory_ = nullptr;
	}

	// Must be called by every thread before it uses the device.
	Status enter() const { return cuda_status(cudaSetDevice(number_), "choose the device"); }
	Status open_stream(Stream *out) const {
		return cuda_status(cudaStreamCreateWithFlags(&out->handle, cudaStreamNonBlocking), "create a stream");
	}
	void close_stream(Stream *stream) const {
		if (stream->handle)
			(void)cudaStreamDestroy(stream->handle);
		stream->handle = nullptr;
	}
	Status free_memory(uint64_t *free, uint64_t *total) const {
		size_t f = 0, t = 0;
		PR_TRY(cuda_status(cudaMemGetInfo(&f, &t), "ask for free memory"));
		*free = f;
		*total = t;
		return Status{};
	}

	// Threads that keep the device busy.
	uint32_t lanes() const { return lanes_; }

	Arena arena, pinned;
	uint64_t pin_budget = 0; // bytes of callers' memory that may be pinned

private:
	int number_ = -1;
	void *memory_ = nullptr, *pinned_memory_ = nullptr;
	uint32_t lanes_ = 0;
};

} // namespace proofrack
