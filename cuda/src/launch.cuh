// How a kernel is written once and run on a GPU, or block by block on the processor.
//
// A kernel is a trivially copyable struct: its arguments are members, and it has
//
//	static constexpr int threads = 128;           // of a block
//	struct Shared { … };                          // what a block's threads share; trivial, may be empty
//	template <class Block> PR_FN void run(Block &b) const
//
// and optionally `static constexpr int min_blocks` (the second argument of __launch_bounds__). The code of a block is cut
// into phases:
//
//	PerThread<Fr, threads> kept;                  // what a thread keeps over phases
//	b.each([&](int t) { kept[t] = …; b.shared().x[t] = …; });
//	b.sync();
//	b.each([&](int t) { … });
//
// On a GPU each calls the lambda once, sync is the barrier, PerThread one variable. On the host each is a loop over the
// block's threads in order, and blocks are shared out over the stream's threads. So what one thread reads of another's
// work must be separated by sync in both; the host finds a forgotten one only where the order of threads shows it.
// Blocks must not wait for each other. On the host shared memory is filled with 0xa5 before each block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device/status.h"
#include "device/stream.h"

#ifdef PROOFRACK_HOST
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>
#define PR_FN inline
#define PR_NOINLINE __attribute__((noinline))
#define PR_UNROLL _Pragma("GCC unroll 16")
#define PR_NOUNROLL _Pragma("GCC unroll 1")
#else
#define PR_FN __host__ __device__ __forceinline__
#define PR_NOINLINE __host__ __device__ __noinline__
#define PR_UNROLL _Pragma("unroll")
#define PR_NOUNROLL _Pragma("unroll 1")
#endif

namespace proofrack {

// The shared memory of a kernel that needs none.
struct NoShared {};

// The most blocks of one launch.
constexpr uint64_t blocks_max = (uint64_t{1} << 31) - 1;

namespace launching {

// min_blocks<K>(0) is K::min_blocks, or 1 where K has none.
template <class K>
constexpr auto min_blocks(int) -> decltype(int{K::min_blocks}) {
	return K::min_blocks;
}
template <class K>
constexpr int min_blocks(long) {
	return 1;
}

} // namespace launching

#ifdef PROOFRACK_HOST

template <class T, int N>
struct PerThread {
	T values[N];
	T &operator[](int t) { return values[t]; }
	const T &operator[](int t) const { return values[t]; }
};

template <class K>
struct Block {
	uint32_t index;
	typename K::Shared *memory;

	template <class F>
	void each(F &&f) {
		for (int t = 0; t < K::threads; t++)
			f(t);
	}
	void sync() {}
	typename K::Shared &shared() { return *memory; }
};

inline uint32_t atomic_add(uint32_t *p, uint32_t v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
inline uint64_t atomic_add(uint64_t *p, uint64_t v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
inline uint32_t atomic_or(uint32_t *p, uint32_t v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }

namespace launching {

// Takes blocks from the counter until there are none left. False when there is no memory for what they share.
template <class K>
bool take_blocks(const K &kernel, uint64_t blocks, std::atomic<uint64_t> &next, uint64_t step) {
	constexpr size_t bytes = (sizeof(typename K::Shared) + 63) / 64 * 64;
	void *memory = std::aligned_alloc(64, bytes);
	if (memory == nullptr)
		return false;
	for (uint64_t from; (from = next.fetch_add(step)) < blocks;) {
		uint64_t to = from + step < blocks ? from + step : blocks;
		for (uint64_t i = from; i < to; i++) {
			std::memset(memory, 0xa5, bytes);
			Block<K> block{static_cast<uint32_t>(i), static_cast<typename K::Shared *>(memory)};
			kernel.run(block);
		}
	}
	std::free(memory);
	return true;
}

constexpr int helpers_max = 255;

} // namespace launching

// Runs all blocks of a kernel before it returns.
template <class K>
Status launch(const Stream &stream, const K &kernel, uint64_t blocks) {
	if (blocks > blocks_max)
		return fail(PRCUDA_ERROR_INTERNAL, "launch kernel", "too many blocks");
	if (blocks == 0)
		return Status{};
	uint64_t wanted = stream.threads < 1 ? 1 : static_cast<uint64_t>(stream.threads);
	wanted = wanted < blocks ? wanted : blocks;
	int helpers = static_cast<int>(wanted - 1 < launching::helpers_max ? wanted - 1 : launching::helpers_max);
	uint64_t step = blocks / (wanted * 16);
	step = step == 0 ? 1 : step;
	std::atomic<uint64_t> next{0};
	std::atomic<bool> starved{false};
	auto work = [&] {
		if (!launching::take_blocks(kernel, blocks, next, step))
			starved = true;
	};
	std::thread threads[launching::helpers_max];
	for (int i = 0; i < helpers; i++) {
		try {
			threads[i] = std::thread(work);
		} catch (const std::system_error &) {
			break; // the others do its share
		}
	}
	work();
	for (std::thread &t : threads)
		if (t.joinable())
			t.join();
	if (starved)
		return fail(PRCUDA_ERROR_HOST_MEMORY, "launch kernel", "no memory for a block");
	return Status{};
}

#else

template <class T, int N>
struct PerThread {
	T value;
	PR_FN T &operator[](int) { return value; }
	PR_FN const T &operator[](int) const { return value; }
};

template <class K>
struct Block {
	uint32_t index;
	typename K::Shared *memory;

	template <class F>
	PR_FN void each(F &&f) {
#ifdef __CUDA_ARCH__
		f(static_cast<int>(threadIdx.x));
#else
		(void)f;
#endif
	}
	PR_FN void sync() {
#ifdef __CUDA_ARCH__
		__syncthreads();
#endif
	}
	PR_FN typename K::Shared &shared() { return *memory; }
};

// A kernel's code is compiled for both sides, but runs on the device alone.
PR_FN uint32_t atomic_add(uint32_t *p, uint32_t v) {
#ifdef __CUDA_ARCH__
	return atomicAdd(p, v);
#else
	return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
#endif
}
PR_FN uint64_t atomic_add(uint64_t *p, uint64_t v) {
#ifdef __CUDA_ARCH__
	return atomicAdd(reinterpret_cast<unsigned long long *>(p), static_cast<unsigned long long>(v));
#else
	return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
#endif
}
PR_FN uint32_t atomic_or(uint32_t *p, uint32_t v) {
#ifdef __CUDA_ARCH__
	return atomicOr(p, v);
#else
	return __atomic_fetch_or(p, v, __ATOMIC_RELAXED);
#endif
}

namespace launching {

template <class K>
__global__ void __launch_bounds__(K::threads, min_blocks<K>(0)) entry(const K kernel) {
	extern __shared__ uint4 memory[];
	Block<K> block{blockIdx.x, reinterpret_cast<typename K::Shared *>(memory)};
	kernel.run(block);
}

// What a block has without being asked for.
constexpr size_t shared_bytes_default = 48 << 10;

template <class K>
constexpr size_t shared_bytes() {
	return std::is_empty<typename K::Shared>::value ? 0 : sizeof(typename K::Shared);
}

} // namespace launching

// Queues a kernel behind what is in the stream.
template <class K>
Status launch(const Stream &stream, const K &kernel, uint64_t blocks) {
	static_assert(std::is_trivially_copyable<K>::value, "a kernel's arguments are copied to the device");
	if (blocks > blocks_max)
		return fail(PRCUDA_ERROR_INTERNAL, "launch kernel", "too many blocks");
	if (blocks == 0)
		return Status{};
	constexpr size_t shared = launching::shared_bytes<K>();
	if (shared > launching::shared_bytes_default) {
		PR_TRY(cuda_status(cudaFuncSetAttribute(launching::entry<K>, cudaFuncAttributeMaxDynamicSharedMemorySize,
							   static_cast<int>(shared)),
			"reserve shared memory of a kernel"));
	}
	launching::entry<K><<<static_cast<unsigned>(blocks), K::threads, shared, stream.handle>>>(kernel);
	return cuda_status(cudaGetLastError(), "launch kernel");
}

#endif

// The kernel that calls f(i) for every i below count.
template <class F>
struct ForEach {
	static constexpr int threads = 128;
	using Shared = NoShared;
	F f;
	uint64_t count;

	template <class B>
	PR_FN void run(B &b) const {
		b.each([&](int t) {
			uint64_t i = uint64_t{b.index} * threads + static_cast<uint64_t>(t);
			if (i < count)
				f(i);
		});
	}
};

// Calls f(i) for every i below count, one thread each. f is a trivially copyable struct with
// `PR_FN void operator()(uint64_t i) const`.
template <class F>
Status for_each(const Stream &stream, const F &f, uint64_t count) {
	using K = ForEach<F>;
	return launch(stream, K{f, count}, (count + K::threads - 1) / K::threads);
}

} // namespace proofrack
