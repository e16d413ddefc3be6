package coordinator

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/sizes"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// beatOnce has a node report both roles, 2 GiB of memory and 1 GiB for segments.
func beatOnce(t *testing.T, nodes *rack.Registry, circuit string) {
	t.Helper()
	for _, role := range []string{wire.RoleSynth, wire.RoleGPU} {
		beat := &wire.Beat{
			Node: "n1", Boot: "boot", Instance: role, Role: role, Seq: 1, State: wire.StateReady, WireMin: 1, WireMax: 2,
			Slots: 1,
		}
		if role == wire.RoleSynth {
			beat.Synth = []wire.SynthCircuit{{Circuit: circuit, SegmentBytes: bytesize.MiB, ScratchBytes: bytesize.MiB}}
			beat.Host = &wire.HostReport{
				Capacity: ledger.Amounts{ledger.PoolRAM: 2 * bytesize.GiB, ledger.PoolSHM: bytesize.GiB}, BookComplete: true,
				At: time.Now(),
			}
		} else {
			beat.Devices = []wire.DeviceState{{
				Device: "cpu", Healthy: true, Circuits: []wire.DeviceCircuit{{Circuit: circuit, Ready: true}},
			}}
		}
		if err := beat.Check(); err != nil {
			t.Fatal(err)
		}
		nodes.Beat(beat, time.Now())
	}
}

// B41: what no node, or no quota, can hold by the sizes that were learned is refused when it is submitted, though the
// workers compute less. Every coordinator does so, not the leader alone.
func TestB41IntakeGoesByLearnedSizes(t *testing.T) {
	t.Parallel()
	const circuit = "c"
	b := membus.New(membus.Config{}).Connect(bus.Events{})
	defer b.Close()
	streams := DefaultStreams()
	if err := b.Setup(t.Context(), streams.Topology()); err != nil {
		t.Fatal(err)
	}
	kept, err := store.Open(t.Context(), b, store.DefaultConfig(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	nodes, err := rack.New(rack.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	beatOnce(t, nodes, circuit)
	config := DefaultConfig()
	config.Memory.StoreEvery = time.Nanosecond
	config.Schedule.QuotaBytes = map[string]bytesize.Bytes{"small": bytesize.GiB}
	g := &gate{c: &coordinator{config: config, log: zerolog.Nop(), store: kept, nodes: nodes}}
	fits := func() (node, quota error) { return g.Fits(circuit), g.FitsQuota("small", circuit) }
	if node, quota := fits(); node != nil || quota != nil {
		t.Fatalf("as computed: %v, %v", node, quota)
	}
	learn := func(ram bytesize.Bytes) {
		t.Helper()
		table := sizes.New(config.sizes())
		key := sizes.Key{Circuit: circuit, Stage: job.Synthesizing, Pool: ledger.PoolRAM}
		if err := table.Pin(time.Now(), key, ram); err != nil {
			t.Fatal(err)
		}
		rows, speeds, err := table.Encode()
		if err != nil {
			t.Fatal(err)
		}
		before, err := kept.Learned(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := kept.SaveLearned(t.Context(), before, rows, speeds); err != nil {
			t.Fatal(err)
		}
	}
	learn(1536 * bytesize.MiB)
	if node, quota := fits(); node != nil || fault.KindOf(quota) != fault.Exhausted {
		t.Errorf("more than the quota: %v, %v", node, quota)
	}
	learn(3 * bytesize.GiB)
	if node, quota := fits(); fault.KindOf(node) != fault.Exhausted || fault.KindOf(quota) != fault.Exhausted {
		t.Errorf("more than any node has: %v, %v", node, quota)
	}
}
