// Package entry calls the test entries of the host-compiled library (cuda/src/test.h), since test files cannot use cgo.
// Only tests import it.
//
//	lib := entry.Open(t)                                 // build/libproofrack_cuda_host.so; a missing one fails the test
//	err := lib.Call("prcuda_test_fr_mul", x, y, out, len(x))
//
// An entry is a C function of the form
//
//	prcuda_status prcuda_test_NAME(const uint64_t *args, int32_t count)
//
// Each argument is one word: a whole number, or the address of a slice's first element (0 for an empty slice). Slices
// hold no pointers; they are pinned during the call, and the entry may write to them.
package entry
