// The functions of a loaded library, called through pointers. Only the Go binding includes it.
#ifndef PROOFRACK_CUDA_API_H
#define PROOFRACK_CUDA_API_H

#include "include/proofrack_cuda.h"

// The functions of one loaded library.
typedef struct {
	void (*release)(void *);
	prcuda_status (*get_version)(prcuda_version *);
	prcuda_status (*devices)(prcuda_device_info *, int32_t, int32_t *);
	prcuda_status (*open)(const char *, const prcuda_options *, prcuda_device **);
	prcuda_status (*close)(prcuda_device *);
	prcuda_status (*get_memory)(prcuda_device *, prcuda_memory *);
	prcuda_status (*plan_circuit)(const prcuda_shape *, uint64_t, int32_t, prcuda_plan *);
	prcuda_status (*params_open)(prcuda_device *, const prcuda_shape *, const prcuda_points *, int32_t, prcuda_params **);
	prcuda_status (*params_close)(prcuda_params *);
	prcuda_status (*params_plan)(prcuda_params *, prcuda_plan *);
	prcuda_status (*pending_open)(prcuda_params *, prcuda_pending **);
	prcuda_status (*start)(prcuda_pending *, const void *, const prcuda_layout *);
	prcuda_status (*finish)(prcuda_pending *, prcuda_sums *);
	prcuda_status (*get_timings)(prcuda_pending *, prcuda_timings *);
	void (*abort)(prcuda_pending *);
	prcuda_status (*pending_close)(prcuda_pending *);
} api;

static inline void api_set(api *a, int i, void *f) { ((void **)a)[i] = f; }

static inline void api_release(const api *a, void *m) { a->release(m); }
static inline prcuda_status api_get_version(const api *a, prcuda_version *out) { return a->get_version(out); }
static inline prcuda_status api_devices(const api *a, prcuda_device_info *out, int32_t capacity, int32_t *count) {
	return a->devices(out, capacity, count);
}
static inline prcuda_status api_open(const api *a, const char *uuid, const prcuda_options *o, prcuda_device **out) {
	return a->open(uuid, o, out);
}
static inline prcuda_status api_close(const api *a, prcuda_device *d) { return a->close(d); }
static inline prcuda_status api_get_memory(const api *a, prcuda_device *d, prcuda_memory *out) { return a->get_memory(d, out); }
static inline prcuda_status api_plan(const api *a, const prcuda_shape *s, uint64_t arena, int32_t pending, prcuda_plan *out) {
	return a->plan_circuit(s, arena, pending, out);
}
static inline prcuda_status api_params_open(const api *a, prcuda_device *d, const prcuda_shape *s, const prcuda_points *p,
	int32_t pending, prcuda_params **out) {
	return a->params_open(d, s, p, pending, out);
}
static inline prcuda_status api_params_close(const api *a, prcuda_params *p) { return a->params_close(p); }
static inline prcuda_status api_params_plan(const api *a, prcuda_params *p, prcuda_plan *out) { return a->params_plan(p, out); }
static inline prcuda_status api_pending_open(const api *a, prcuda_params *p, prcuda_pending **out) {
	return a->pending_open(p, out);
}
static inline prcuda_status api_start(const api *a, prcuda_pending *p, const void *segment, const prcuda_layout *l) {
	return a->start(p, segment, l);
}
static inline prcuda_status api_finish(const api *a, prcuda_pending *p, prcuda_sums *out) {
	return a->finish(p, out);
}
static inline prcuda_status api_get_timings(const api *a, prcuda_pending *p, prcuda_timings *out) {
	return a->get_timings(p, out);
}
static inline void api_abort(const api *a, prcuda_pending *p) { a->abort(p); }
static inline prcuda_status api_pending_close(const api *a, prcuda_pending *p) { return a->pending_close(p); }

#endif
