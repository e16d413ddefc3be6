package rack_test

import (
	"testing"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/prover"
	"github.com/proofrack/proofrack/shared/wire"
)

// There is no table of needs that a kind of work could be missing from: sizes follow from the circuit. All circuits of
// this build have them, a device's is booked for each, and what does not say how much it takes is given no work.
func TestB19EveryKindOfWorkSaysWhatItTakes(t *testing.T) {
	t.Parallel()
	cpu := prover.NewCPU(prover.CPUConfig{Workers: 1})
	defer cpu.Close()
	capacity := ledger.Amounts{
		ledger.PoolRAM: bytesize.TiB, ledger.PoolSHM: bytesize.TiB, ledger.PoolDisk: bytesize.TiB,
		ledger.PoolVRAM("gpu0"): bytesize.TiB,
	}
	for _, c := range catalog.Circuits() {
		layout, err := compact.LayoutOf(c)
		if err != nil {
			t.Errorf("circuit %s: %v", c.ID(), err)
			continue
		}
		m := cpu.Memory(circuit.Totals(c))
		synth := wire.SynthCircuit{Circuit: c.ID(), SegmentBytes: bytesize.Bytes(layout.Bytes())}
		proof := wire.DeviceCircuit{
			Circuit: c.ID(), Ready: true, SharedBytes: bytesize.Bytes(m.SharedBytes),
			WorkingBytes: bytesize.Bytes(m.WorkingBytes), PendingBytes: bytesize.Bytes(m.PendingBytes), DeviceBytes: 1,
		}
		for name, n := range map[string]bytesize.Bytes{
			"segment": synth.SegmentBytes, "vectors": proof.SharedBytes, "sums": proof.WorkingBytes,
			"pending proof": proof.PendingBytes,
		} {
			if n <= 0 {
				t.Errorf("circuit %s: its %s takes %s", c.ID(), name, n)
			}
		}
		r := registry(t)
		view := func() (bool, string, int) {
			n, _ := r.Node("n1")
			v := n.View(store.NodeMark{}).Devices[0].Circuits[c.ID()]
			for _, choice := range v.Choices {
				assets := map[ledger.Pool]bytesize.Bytes{}
				for _, a := range choice.Assets {
					assets[a.Pool] += a.Bytes
				}
				if choice.Amounts[ledger.PoolRAM] <= 0 || assets[ledger.PoolVRAM("gpu0")] != 1 ||
					assets[ledger.PoolRAM] != proof.SharedBytes+proof.WorkingBytes {
					t.Errorf("circuit %s: an attempt takes %v beside %v", c.ID(), choice.Amounts, choice.Assets)
				}
			}
			return v.Ready, v.Missing, len(v.Choices)
		}
		device := []wire.DeviceState{{Device: "gpu0", Healthy: true, Circuits: []wire.DeviceCircuit{proof}}}
		r.Beat(beat("g", wire.RoleGPU, 1, func(b *wire.Beat) { b.Devices = device }), at(0))
		offer := func(seq uint64, circuits ...wire.SynthCircuit) {
			r.Beat(beat("a", wire.RoleSynth, seq, func(b *wire.Beat) {
				b.Synth, b.Host = circuits, &wire.HostReport{Capacity: capacity}
			}), at(0))
		}
		offer(1, synth)
		if ready, missing, choices := view(); !ready || choices != 2 {
			t.Errorf("circuit %s is ready: %v (%s), in %d ways", c.ID(), ready, missing, choices)
		}
		offer(2)
		if ready, missing, choices := view(); ready || missing == "" || choices != 0 {
			t.Errorf("circuit %s, which nobody declares, is ready: %v (%s)", c.ID(), ready, missing)
		}
		offer(3, wire.SynthCircuit{Circuit: c.ID()})
		if ready, missing, choices := view(); ready || missing == "" || choices != 0 {
			t.Errorf("circuit %s, of no size, is ready: %v (%s)", c.ID(), ready, missing)
		}
	}
}
