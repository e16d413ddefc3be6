/*
 * The C interface of proofrack's device library: Groth16 over BLS12-381 on NVIDIA GPUs. Plain C99. Two libraries have
 * it: libproofrack_cuda.so (GPUs) and libproofrack_cuda_host.so (the same device code run block by block on the
 * processor, for tests: one device with the UUID "host").
 *
 *   devices ─► open(uuid, arena) ─► plan ─► params_open ─► pending_open ─► start ─► finish ─► pending_close
 *                                                             │    abort (any time, any thread)
 *   close ◄── params_close ◄──────────────────────────────────┘
 *
 * Every function may be called from any thread, and several at once; an object must not be closed while another call
 * uses it. Handles are closed in the reverse order of their opening, else the close gives PRCUDA_ERROR_ARGUMENT.
 * A status is given by value; its message, unless NULL, is the caller's to free with prcuda_free. No function throws,
 * prints or ends the process. After PRCUDA_ERROR_DEVICE the device's context may be lost: end the process.
 *
 * Field elements and affine points are as gnark-crypto has them in memory: Montgomery form, little-endian words; a G1
 * point has 96 bytes, a G2 point 192, and the point at infinity is all zeros. Sizes are bytes.
 */
#ifndef PROOFRACK_CUDA_H
#define PROOFRACK_CUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PRCUDA_API __attribute__((visibility("default")))
#else
#define PRCUDA_API
#endif

/* PRCUDA_ABI rises with every change that a caller would notice. A caller refuses a library of another one. */
#define PRCUDA_ABI 1

enum {
	PRCUDA_OK = 0,
	PRCUDA_ERROR_ARGUMENT = 1,    /* the caller's mistake */
	PRCUDA_ERROR_NO_DRIVER = 2,   /* no NVIDIA driver */
	PRCUDA_ERROR_OLD_DRIVER = 3,  /* the driver is older than the library's runtime */
	PRCUDA_ERROR_NO_DEVICE = 4,   /* no device, or none with that UUID */
	PRCUDA_ERROR_MEMORY = 5,      /* the arena, or the device's memory, is too small */
	PRCUDA_ERROR_HOST_MEMORY = 6, /* no host memory, or none that can be pinned */
	PRCUDA_ERROR_ABORTED = 7,     /* prcuda_abort was called */
	PRCUDA_ERROR_DEVICE = 8,      /* the device or the driver is at fault */
	PRCUDA_ERROR_BUSY = 9,        /* as many proofs are pending as the plan has */
	PRCUDA_ERROR_QUOTIENT = 10,   /* the quotient has too high a degree: arithmetic or memory is at fault */
	PRCUDA_ERROR_INTERNAL = 11    /* a broken invariant of the library */
};

typedef struct {
	int32_t code;
	char *message; /* NULL when code is PRCUDA_OK */
} prcuda_status;

PRCUDA_API void prcuda_free(void *memory);

typedef struct {
	int32_t abi;     /* PRCUDA_ABI of the library */
	int32_t host;    /* 1 when device code runs on the processor */
	int32_t runtime; /* CUDA runtime linked in, 1000·major + 10·minor; 0 without one */
	int32_t driver;  /* the newest runtime that the driver serves, likewise; 0 without a driver */
	char architectures[128]; /* for which there is code, "75 80 90" */
} prcuda_version;

/* Always PRCUDA_OK. */
PRCUDA_API prcuda_status prcuda_get_version(prcuda_version *out);

typedef struct {
	char uuid[48]; /* "GPU-…", "MIG-…" or "host" */
	char name[96];
	char pci[24];  /* "0000:17:00.0", or "" */
	uint64_t memory_bytes;
	int32_t major, minor; /* compute capability */
	int32_t multiprocessors;
	int32_t clock_khz;
} prcuda_device_info;

/* Lists up to capacity devices; *count is how many there are. */
PRCUDA_API prcuda_status prcuda_devices(prcuda_device_info *out, int32_t capacity, int32_t *count);

typedef struct prcuda_device prcuda_device;

typedef struct {
	uint64_t arena_bytes;  /* device memory to take, at once, and the most that is ever taken; 0: all that is free */
	uint64_t pinned_bytes; /* host memory to pin, likewise */
	int32_t threads;       /* of the processor, for the host-compiled library; less than 1: all */
} prcuda_options;

/* Opens the device with that UUID, never one by a number. */
PRCUDA_API prcuda_status prcuda_open(const char *uuid, const prcuda_options *options, prcuda_device **out);
PRCUDA_API prcuda_status prcuda_close(prcuda_device *device);

typedef struct {
	uint64_t free_bytes, total_bytes;   /* of the device, as the driver tells */
	uint64_t arena_bytes, arena_used;   /* of the arena, now */
	uint64_t arena_peak;                /* the most that was used of it */
	uint64_t pinned_bytes;
} prcuda_memory;

PRCUDA_API prcuda_status prcuda_get_memory(prcuda_device *device, prcuda_memory *out);

/* What is the same for all proofs of a circuit. rows are without the appended input rows, inputs with ONE. */
typedef struct {
	uint64_t rows, inputs, aux;
	uint64_t full_a, full_b, full_aux; /* full elements; the appended input rows are not counted in full_a */
	uint64_t h, l, a, b;               /* points of each list */
} prcuda_shape;

typedef struct {
	uint64_t peak_bytes;    /* of the arena, with so many proofs pending */
	uint64_t shared_bytes;  /* of that: kept while the parameters are open */
	uint64_t pending_bytes; /* of that: kept for each proof between start and finish */
	uint64_t pinned_bytes;  /* of the host */
	int32_t pending;        /* proofs that may be pending at once */
	int32_t resident;       /* 1: the points stay on the device; 0: they are streamed for every proof */
} prcuda_plan;

/*
 * Computes what a circuit takes before anything is taken. arena_bytes is what the device would give, 0 for no limit;
 * pending is how many proofs are wanted at once; the plan has fewer where they do not fit. PRCUDA_ERROR_MEMORY when
 * not even one does, with need and have in the message and the need in out->peak_bytes.
 */
PRCUDA_API prcuda_status prcuda_plan_circuit(
	const prcuda_shape *shape, uint64_t arena_bytes, int32_t pending, prcuda_plan *out);

typedef struct prcuda_params prcuda_params;

/* Host memory that stays as it is until prcuda_params_close. */
typedef struct {
	const void *h, *l, *a, *b1; /* affine G1 points */
	const void *b2;             /* affine G2 points */
	const uint64_t *a_aux;      /* bit i: auxiliary i has a point in A */
	const uint64_t *b_aux;      /* the same for B1 and B2 */
	const uint64_t *b_inputs;   /* bit i: input i has a point in B1 and B2 */
} prcuda_points;

PRCUDA_API prcuda_status prcuda_params_open(
	prcuda_device *device, const prcuda_shape *shape, const prcuda_points *points, int32_t pending, prcuda_params **out);
PRCUDA_API prcuda_status prcuda_params_close(prcuda_params *params);
/* The plan that the parameters were opened with. */
PRCUDA_API prcuda_status prcuda_params_plan(prcuda_params *params, prcuda_plan *out);

/* Where the parts of a segment begin (docs/formats.md, "Segment"), bytes from its start. */
typedef struct {
	uint64_t bytes; /* of the segment */
	uint64_t inputs;
	uint64_t a0, a1, b0, a_full, b_full;
	uint64_t x0, x_full;
	uint64_t rank_a, rank_b, rank_x;
	uint64_t list_a, list_b, list_x;
} prcuda_layout;

typedef struct prcuda_pending prcuda_pending;

PRCUDA_API prcuda_status prcuda_pending_open(prcuda_params *params, prcuda_pending **out);
/*
 * Uploads a segment, computes the quotient and the sums in G1, and returns when the segment's a and b are not needed
 * any more. Starts of a device take turns. The segment was verified by the caller.
 */
PRCUDA_API prcuda_status prcuda_start(prcuda_pending *pending, const void *segment, const prcuda_layout *layout);

/* Sums over the lists, affine. */
typedef struct {
	uint8_t a[96], b1[96], c[96]; /* c is the sum over H and L */
	uint8_t b2[192];
} prcuda_sums;

/* Seconds of each part; those on the device are by the device's clock. */
typedef struct {
	double upload, quotient, h, l, a, b1, b2;
	double busy;             /* of all of these together, overlaps counted once */
	uint64_t uploaded_bytes; /* of the segment */
	uint64_t streamed_bytes; /* of points */
	uint64_t peak_bytes;     /* of the arena since the parameters were opened */
} prcuda_timings;

/* Sums over B2 and gives all sums. The segment is not read any more. */
PRCUDA_API prcuda_status prcuda_finish(prcuda_pending *pending, prcuda_sums *out);
PRCUDA_API prcuda_status prcuda_get_timings(prcuda_pending *pending, prcuda_timings *out);
/* Has a start or finish that runs, or comes, end soon with PRCUDA_ERROR_ABORTED. */
PRCUDA_API void prcuda_abort(prcuda_pending *pending);
/* Gives back what the proof has on the device, whatever state it is in, but not while a call uses it. */
PRCUDA_API prcuda_status prcuda_pending_close(prcuda_pending *pending);

#ifdef __cplusplus
}
#endif

#endif
