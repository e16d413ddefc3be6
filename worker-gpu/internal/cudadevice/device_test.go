package cudadevice_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/prover"
	"github.com/proofrack/proofrack/shared/prover/provertest"
	"github.com/proofrack/proofrack/worker-gpu/internal/cudadevice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hostLibrary is what `make cuda-host` makes; a missing one fails the test.
func hostLibrary(t testing.TB) string {
	t.Helper()
	path := filepath.Join("..", "..", "..", "cuda", "build", "libproofrack_cuda_host.so")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: make it with `make cuda-host`", err)
	}
	return path
}

// The host-compiled device code gives the very proofs that every other device gives.
func TestHostCompiledDeviceConforms(t *testing.T) {
	t.Parallel()
	provertest.Run(t, func(t testing.TB, options ...groth16.Option) prover.Device {
		device, err := cudadevice.Open(cudadevice.Config{Library: hostLibrary(t), UUID: "host", Options: options})
		if err != nil {
			t.Fatal(err)
		}
		return device
	})
}
