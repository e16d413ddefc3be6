package cuda_test

import (
	"testing"

	"github.com/proofrack/proofrack/cuda/internal/entry"
)

// The library that `make cuda-host` makes loads, and an entry that it does not have is an error.
func TestHostLibraryLoads(t *testing.T) {
	t.Parallel()
	if err := entry.Open(t).Call("prcuda_test_nothing", []uint32{1}, 2); err == nil {
		t.Error("an entry that is not there was called")
	}
}
