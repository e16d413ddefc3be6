//go:build !cgo

package gpu_test

import (
	"testing"

	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/inventory/gpu"
)

func play(string) {}

func TestB99WithoutCgoThereAreNoGPUs(t *testing.T) {
	t.Parallel()
	if _, err := gpu.NVML(gpu.DefaultLibrary, inventory.NewHost()).Open(); err == nil {
		t.Error("it opened")
	}
}
