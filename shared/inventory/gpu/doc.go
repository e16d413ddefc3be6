// Package gpu keeps watch over a host's NVIDIA GPUs through NVML: what there are, where they sit, what memory they
// have, and whether they still answer. It is apart from package inventory because only who drives GPUs links the
// binding.
//
//	             poll fails            poll fails
//	healthy ----------------> suspect ------------> unhealthy
//	   ^  ^---- poll works ------'                      |
//	   '------------------- two polls work -------------'
//
// A suspect device still counts as healthy: one poll may fail for no reason. "GPU is lost" and "needs a reset" skip
// that state. A poll fails for a device when it answers with an error, is no longer listed, or when the driver has not
// answered by the time of the next poll; there is never more than one call to the driver, so one that hangs costs one
// goroutine and no load.
//
// The library is loaded at run time, so that one program runs with and without a driver. No library, no driver, a
// library of another version or a build without cgo are no errors: there are no GPUs then, the reason stands in one
// line of the log and in the Inventory, and the library is not called again, since calls after a failed start end the
// process. For the same reason every function is looked up before it is called; one that is missing counts as "not
// supported".
//
// What a device does not tell is unknown, never 0: a MIG slice often keeps its memory to itself. Such a device can be
// used with an amount from the configuration only (Device.Capacity).
//
// Programs that link this package must not be linked with "-z now" (hardened flags of some distributions): the
// binding's symbols are bound when they are first called.
//
// The package judges no running work: that is done by its own result.
package gpu
