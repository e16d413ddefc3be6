// Package cuda is the Go side of the device library: Groth16's arithmetic on NVIDIA GPUs (docs/cuda.md). The library is
// C++ (include/, src/) behind a C interface and is loaded at run time, so that programs build and run without it.
//
//	Load(path) ─► Library.Devices ─► Library.Open(uuid) ─► Device.Load(parameters) ─► Params.Begin ─► Pending
//	                                                                       Pending: Start ─► Finish ─► Sums, Close
//
// Without a library, driver or device the error wraps ErrNoDevice and says what is missing. Every object is closed by
// who opened it, in the reverse order; nothing is left to finalizers.
//
// The package knows fields and points as gnark-crypto has them, and nothing else of proofrack: blinding, assembly and
// verification are its caller's.
package cuda
