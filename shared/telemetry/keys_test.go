package telemetry_test

import (
	"testing"

	"github.com/proofrack/proofrack/shared/telemetry"
)

// Dashboards and alerts of others are built on these names: a change breaks them.
func TestKeysAreWhatTheHouseStyleSays(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		telemetry.KeyJobID:         "c2.job.id",
		telemetry.KeyPartition:     "c2.partition.index",
		telemetry.KeyAttemptNumber: "c2.attempt.number",
		telemetry.KeyFence:         "c2.fence",
		telemetry.KeyStage:         "c2.stage",
		telemetry.KeyCircuit:       "c2.circuit",
		telemetry.KeyNodeID:        "c2.node.id",
		telemetry.KeyGPUID:         "c2.gpu.id",
		telemetry.KeySectorNumber:  "c2.sector.number",
		telemetry.KeyMinerID:       "c2.miner.id",
		telemetry.KeyPool:          "c2.pool",
		telemetry.KeyBytes:         "c2.bytes",
		telemetry.KeyFaultKind:     "c2.fault.kind",
	} {
		if got != want {
			t.Errorf("key %q, want %q", got, want)
		}
	}
}
