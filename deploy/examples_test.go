package deploy_test

import (
	"testing"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/shared/config/configtest"
	workergpu "github.com/proofrack/proofrack/worker-gpu"
	workersynth "github.com/proofrack/proofrack/worker-synth"
)

// TestExamplesAreTheProgramsOwn compares the shipped examples with what the programs print, and loads them back.
// REWRITE=1 in the environment writes them.
func TestExamplesAreTheProgramsOwn(t *testing.T) {
	t.Parallel()
	configtest.Example(t, "examples/coordinator.toml", "Coordinator", coordinator.DefaultConfig)
	configtest.Example(t, "examples/worker-gpu.toml", "GPU worker", workergpu.DefaultConfig, "node=n1")
	configtest.Example(t, "examples/worker-synth.toml", "Synthesis worker", workersynth.DefaultConfig, "node=n1")
}
