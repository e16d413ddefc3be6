package workersynth_test

import (
	"context"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	workersynth "github.com/proofrack/proofrack/worker-synth"
)

// A start that fails must end the program with the reason, not as if it had been asked to stop.
func TestStartThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	c := workersynth.DefaultConfig()
	c.Node, c.HTTP.Listen = "n1", ""
	c.Memory.Claims = t.TempDir()
	c.Spill.Path, c.Spill.DiskPath = t.TempDir(), t.TempDir() // two disks: nothing to fall back to
	server := membus.New(membus.Config{})
	c.Connect = func(context.Context) (bus.Bus, error) { return server.Connect(bus.Events{}), nil }
	err := workersynth.Run(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "spill folders") {
		t.Errorf("ended with %v", err)
	}
}
