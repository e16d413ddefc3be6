package rack_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/sizes"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func registry(t *testing.T) *rack.Registry {
	t.Helper()
	r, err := rack.New(rack.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func beat(instance, role string, seq uint64, edits ...func(*wire.Beat)) *wire.Beat {
	b := &wire.Beat{
		Node: "n1", Boot: "boot", Instance: instance, Role: role, Seq: seq, WireMin: 1, WireMax: 2, State: wire.StateReady,
		Slots: 2,
	}
	for _, edit := range edits {
		edit(b)
	}
	return b
}

func TestB33SilentProcessesLeaveWithinALease(t *testing.T) {
	t.Parallel()
	r := registry(t)
	r.Beat(beat("a", wire.RoleSynth, 1), at(0))
	r.Beat(beat("b", wire.RoleGPU, 1), at(10))
	if gone := r.Expire(at(15)); len(gone) != 0 {
		t.Errorf("gone after exactly a lease: %v", gone)
	}
	r.Expire(at(15.1))
	n, ok := r.Node("n1")
	if !ok || len(n.Processes) != 1 || n.Processes[0].Beat.Instance != "b" {
		t.Errorf("left: %+v", n.Processes)
	}
	if gone := r.Expire(at(25.1)); !cmp.Equal(gone, []job.Node{"n1"}) {
		t.Errorf("gone: %v", gone)
	}
	if len(r.Nodes()) != 0 {
		t.Error("a dead node is listed")
	}
}

// A worker that is started again replaces the one before as soon as that is silent (B32): one entry for one worker.
func TestB32ARestartedWorkerIsListedOnce(t *testing.T) {
	t.Parallel()
	c := rack.Config{Heartbeat: time.Second, Lease: 15 * time.Second}
	r, err := rack.New(c)
	if err != nil {
		t.Fatal(err)
	}
	r.Beat(beat("old", wire.RoleSynth, 9), at(0))
	r.Beat(beat("new", wire.RoleSynth, 1), at(0.5))
	for s := 1.5; s < 4; s++ {
		r.Beat(beat("new", wire.RoleSynth, uint64(s)+1), at(s))
	}
	r.Expire(at(3.2))
	if n, _ := r.Node("n1"); len(n.Processes) != 1 || n.Processes[0].Beat.Instance != "new" {
		t.Errorf("listed: %+v", n.Processes)
	}
}

func TestTwoWorkersOfOneRoleLiveSideBySide(t *testing.T) {
	t.Parallel()
	r := registry(t)
	for s := range 10 {
		r.Beat(beat("a", wire.RoleSynth, uint64(s)+1), at(float64(5*s)))
		r.Beat(beat("b", wire.RoleSynth, uint64(s)+1), at(float64(5*s)+2))
		r.Expire(at(float64(5*s) + 4))
	}
	if n, _ := r.Node("n1"); len(n.Processes) != 2 {
		t.Errorf("listed: %+v", n.Processes)
	}
}

func TestLateBeatsDoNotCount(t *testing.T) {
	t.Parallel()
	r := registry(t)
	r.Beat(beat("a", wire.RoleSynth, 5, func(b *wire.Beat) { b.State = wire.StateDraining }), at(0))
	if r.Beat(beat("a", wire.RoleSynth, 4), at(1)) {
		t.Error("an earlier beat counted")
	}
	if n, _ := r.Node("n1"); n.Processes[0].Beat.State != wire.StateDraining || !n.SeenAt.Equal(at(0)) {
		t.Errorf("%+v", n)
	}
}

func TestProgressIsWhatMoves(t *testing.T) {
	t.Parallel()
	r := registry(t)
	id, err := job.NewID()
	if err != nil {
		t.Fatal(err)
	}
	a := job.Attempt{Job: id, Partition: 1, Fence: 3}
	for i, c := range []struct {
		progress uint64
		stage    job.Stage
		moved    float64
	}{
		{1, job.Synthesizing, 0}, {2, job.Synthesizing, 1}, {2, job.Synthesizing, 1}, {2, job.Sealed, 3}, {1, job.Sealed, 3},
	} {
		r.Beat(beat("a", wire.RoleSynth, uint64(i)+1, func(b *wire.Beat) {
			b.Running = []wire.Running{{Attempt: a, Stage: c.stage, Progress: c.progress}}
		}), at(float64(i)))
		live, ok := r.Live("n1", a)
		if !ok || !live.MovedAt.Equal(at(c.moved)) || !live.SeenAt.Equal(at(float64(i))) {
			t.Errorf("beat %d: %+v, want moved at %v", i, live, c.moved)
		}
	}
	if _, ok := r.Live("n2", a); ok {
		t.Error("another node has it")
	}
}

func TestTheRegistryIsBounded(t *testing.T) {
	t.Parallel()
	r := registry(t)
	for i := range rack.ProcessesMax + 5 {
		r.Beat(beat(fmt.Sprintf("i%d", i), wire.RoleSynth, 1), at(0))
	}
	for i := range rack.NodesMax + 5 {
		r.Beat(beat("x", wire.RoleSynth, 1, func(b *wire.Beat) { b.Node = job.Node(fmt.Sprintf("m%d", i)) }), at(0))
	}
	if n, _ := r.Node("n1"); len(n.Processes) != rack.ProcessesMax || len(r.Nodes()) != rack.NodesMax {
		t.Errorf("%d processes, %d nodes", len(n.Processes), len(r.Nodes()))
	}
	if r.Dropped() == 0 {
		t.Error("nothing was counted as dropped")
	}
}

// A node is offered with what its workers say together: slots add up, versions must be spoken by all, shared bytes are
// named once per node, circuit and device (B40).
func TestAViewPutsWorkersTogether(t *testing.T) {
	t.Parallel()
	r := registry(t)
	host := &wire.HostReport{
		Capacity: ledger.Amounts{ledger.PoolRAM: bytesize.GiB, ledger.PoolSHM: bytesize.GiB, ledger.PoolDisk: bytesize.TiB},
	}
	synth := []wire.SynthCircuit{{Circuit: "c", SegmentBytes: 100, ScratchBytes: 10}}
	r.Beat(beat("a", wire.RoleSynth, 1, func(b *wire.Beat) { b.Synth, b.Host, b.WireMax = synth, host, 1 }), at(0))
	r.Beat(beat("b", wire.RoleSynth, 1, func(b *wire.Beat) { b.Synth = synth }), at(0))
	r.Beat(beat("c", wire.RoleSynth, 1, func(b *wire.Beat) { b.State = wire.StateNotReady }), at(0))
	device := wire.DeviceState{Device: "gpu0", UUID: "U", Healthy: true, Circuits: []wire.DeviceCircuit{
		{Circuit: "c", Ready: true, SRSBytes: 1000, SharedBytes: 20, WorkingBytes: 3, PendingBytes: 5, DeviceBytes: 7,
			PrivateBytes: 28},
		{Circuit: "d", Ready: true}, {Circuit: "e", Missing: "e.params"},
	}}
	r.Beat(beat("g", wire.RoleGPU, 1, func(b *wire.Beat) { b.Devices = []wire.DeviceState{device} }), at(0))
	n, _ := r.Node("n1")
	got := n.View(store.NodeMark{Cordoned: true, Quarantined: map[job.Device]store.Quarantine{"gpu0": {Reason: "bad"}}})
	assets := []ledger.Asset{
		{Name: "srs:c", Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: 1000},
		{Name: "engine:gpu0.c", Pool: ledger.PoolRAM, Class: ledger.ClassScratch, Bytes: 23},
		{Name: "device:gpu0.c", Pool: ledger.PoolVRAM("gpu0"), Class: ledger.ClassScratch, Bytes: 7},
	}
	want := scheduler.NodeView{
		Node: "n1", Ready: true, Cordoned: true, SynthSlots: 4, Wire: scheduler.Versions{Min: 1, Max: 1},
		Capacity: host.Capacity,
		Devices: []scheduler.DeviceView{{
			Device: "gpu0", Healthy: true, Quarantined: true, Reason: "bad", Instance: "g",
			Wire: scheduler.Versions{Min: 1, Max: 2},
			Circuits: map[string]scheduler.CircuitView{
				"c": {Ready: true, Choices: []scheduler.Needs{
					{Amounts: ledger.Amounts{ledger.PoolRAM: 115, ledger.PoolSHM: 100}, Assets: assets},
					{Amounts: ledger.Amounts{ledger.PoolRAM: 15, ledger.PoolDisk: 100}, Assets: assets},
				}, Computed: []scheduler.Computed{
					{Stage: job.Synthesizing, Pool: ledger.PoolRAM, Bytes: 10},
					{Stage: job.Synthesizing, Pool: ledger.PoolSHM, Bytes: 100},
					{Stage: job.Synthesizing, Pool: ledger.PoolDisk, Bytes: 100},
					{Stage: job.Proving, Pool: ledger.PoolRAM, Bytes: 28},
					{Stage: job.Proving, Pool: sizes.VRAM, Bytes: 7},
				}},
				"d": {Missing: "no synthesis worker of the node knows circuit d"}, "e": {Missing: "e.params"},
			},
		}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestANodeWithoutReadyWorkersSaysWhy(t *testing.T) {
	t.Parallel()
	r := registry(t)
	view := func() scheduler.NodeView { n, _ := r.Node("n1"); return n.View(store.NodeMark{}) }
	r.Beat(beat("a", wire.RoleSynth, 1), at(0))
	if v := view(); v.Ready || v.Reason != "no process has reported for the host yet" {
		t.Errorf("%+v", v)
	}
	r.Beat(beat("a", wire.RoleSynth, 2, func(b *wire.Beat) {
		b.Host, b.State, b.Reason = &wire.HostReport{}, wire.StateNotReady, "shm is too small"
	}), at(1))
	if v := view(); v.Ready || v.Reason != "synthesis worker is not ready: shm is too small" {
		t.Errorf("%+v", v)
	}
}

// What a node lacks is told in its workers' words, and is what it really lacks (invariant 8).
func TestANodeSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	synth := []wire.SynthCircuit{{Circuit: "c", SegmentBytes: 100}}
	state := func(state, reason string, circuits []wire.SynthCircuit) func(*wire.Beat) {
		return func(b *wire.Beat) { b.State, b.Reason, b.Synth = state, reason, circuits }
	}
	device := func(b *wire.Beat) {
		circuits := []wire.DeviceCircuit{{Circuit: "c", Ready: true}}
		b.Devices = []wire.DeviceState{{Device: "gpu0", Healthy: true, Circuits: circuits}}
	}
	for name, test := range map[string]struct {
		beats             []*wire.Beat
		ready             bool
		reason            string
		noDevice, missing string
	}{
		"nobody but a GPU worker": {
			[]*wire.Beat{beat("g", wire.RoleGPU, 1, device)}, false, "no synthesis worker", "",
			"no synthesis worker of the node knows circuit c",
		},
		"nobody but a synthesis worker": {
			[]*wire.Beat{beat("a", wire.RoleSynth, 1)}, true, "", "no GPU worker", "",
		},
		"a GPU worker without a device": {
			[]*wire.Beat{beat("a", wire.RoleSynth, 1), beat("g", wire.RoleGPU, 1, func(b *wire.Beat) {
				b.State, b.Reason = wire.StateNotReady, "devices: NVML library not found"
			})}, true, "", "its GPU worker has none: devices: NVML library not found", "",
		},
		"B81: a full folder": {
			[]*wire.Beat{
				beat("a", wire.RoleSynth, 1, state(wire.StateNotReady, "needs 80 MiB, /dev/shm has 4 MiB", synth)),
				beat("g", wire.RoleGPU, 1, device),
			}, false, "synthesis worker is not ready: needs 80 MiB, /dev/shm has 4 MiB", "",
			"synthesis worker is not ready: needs 80 MiB, /dev/shm has 4 MiB",
		},
		"two workers, each with its own trouble": {
			[]*wire.Beat{
				beat("a", wire.RoleSynth, 1, state(wire.StateNotReady, "needs 80 MiB", synth)),
				beat("b", wire.RoleSynth, 1, state(wire.StateDraining, "stopping: terminated", synth)),
			}, false, "synthesis worker is not ready: needs 80 MiB; synthesis worker is draining: stopping: terminated",
			"no GPU worker", "",
		},
		"the only worker that knows the circuit leaves": {
			[]*wire.Beat{
				beat("a", wire.RoleSynth, 1, state(wire.StateReady, "", nil)),
				beat("b", wire.RoleSynth, 1, state(wire.StateDraining, "stopping: terminated", synth)),
				beat("g", wire.RoleGPU, 1, device),
			}, true, "", "", "synthesis worker is draining: stopping: terminated",
		},
		"a circuit that is not ready and does not say why": {
			[]*wire.Beat{
				beat("a", wire.RoleSynth, 1, state(wire.StateReady, "", synth)),
				beat("g", wire.RoleGPU, 1, device, func(b *wire.Beat) { b.Devices[0].Circuits[0].Ready = false }),
			}, true, "", "", "its worker does not say what it lacks",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry(t)
			for _, b := range test.beats {
				b.Host = &wire.HostReport{}
				r.Beat(b, at(0))
			}
			n, _ := r.Node("n1")
			v := n.View(store.NodeMark{})
			if v.Ready != test.ready || v.Reason != test.reason || v.NoDevice != test.noDevice {
				t.Errorf("ready %v: %q; no device: %q", v.Ready, v.Reason, v.NoDevice)
			}
			if test.missing != "" && (len(v.Devices) != 1 || v.Devices[0].Circuits["c"].Missing != test.missing) {
				t.Errorf("devices %+v", v.Devices)
			}
		})
	}
}

// A report counts once, in the order in which reports were made, through a change of the process that makes them and an
// absence of the node: what is declared from it, or released because of it, was so on the host after the report before.
func TestHostReportsAreTakenInTheirOrder(t *testing.T) {
	t.Parallel()
	r := registry(t)
	made := func(seconds float64) func(*wire.Beat) {
		return func(b *wire.Beat) { b.Host = &wire.HostReport{BookComplete: true, At: at(seconds)} }
	}
	last := func() (count uint64, instance string) {
		n, _ := r.Node("n1")
		return n.Host.Count, n.Host.Instance
	}
	r.Beat(beat("a", wire.RoleSynth, 1, made(0)), at(0))
	r.Beat(beat("b", wire.RoleGPU, 1, made(6)), at(6))
	before, _ := last()
	r.Beat(beat("a", wire.RoleSynth, 2, made(5)), at(7)) // a died after it; its beat was slow
	if count, instance := last(); count != before || instance != "b" {
		t.Errorf("a report that was overtaken counts: %d by %s", count, instance)
	}
	n, _ := r.Node("n1")
	if p := n.Processes[1]; p.Beat.Seq != 2 {
		t.Error("the rest of its beat was dropped, too")
	}
	r.Beat(beat("a", wire.RoleSynth, 3, made(-60)), at(8)) // the clock was set back
	count, instance := last()
	if count <= before || instance != "a" {
		t.Errorf("a report after the clock was set back does not count: %d by %s", count, instance)
	}
	r.Expire(at(60))
	r.Beat(beat("c", wire.RoleSynth, 1, made(70)), at(70))
	if again, _ := last(); again <= count || again != r.Reports() {
		t.Errorf("after its absence the node's report is number %d, after %d; %d came", again, count, r.Reports())
	}
}
