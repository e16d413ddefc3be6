package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

// twoCircuits starts a rack of one node that knows two circuits and has memory for what one of them keeps loaded: 777
// MiB for sums, and parameters that are kept decoded.
func twoCircuits(t *testing.T, hooks ...string) (*rack, *node) {
	t.Helper()
	r := newRack(t)
	r.calm()
	r.params = t.TempDir()
	var ids []string
	for _, c := range []circuit.Circuit{toy.Circuit(), toy.Other()} {
		_, err := generate.ToFolder(t.Context(), r.params, c, generate.FromSeed("e2e", c.ID()), generate.Options{})
		r.check(err)
		ids = append(ids, c.ID())
	}
	r.circuits = strings.Join(ids, ",")
	r.startCoordinator()
	n := r.addNode("n1")
	bound := fmt.Sprintf("memory.ram_max=%d", oneCircuit)
	n.startSynth(bound)
	settings := []string{bound, "prove.decoded=true"}
	if len(hooks) > 0 {
		settings = append(settings, r.hooked(hooks...)...)
	}
	n.startGPU(settings...)
	r.ready()
	until(t, "both circuits are ready", func() bool {
		v := r.view()
		return v != nil && len(v.Nodes) == 1 && len(v.Nodes[0].Devices) == 1 && len(v.Nodes[0].Devices[0].Circuits) == 2
	})
	return r, n
}

// oneCircuit is room for one of them.
const oneCircuit = bytesize.GiB

// submitTo has a job of one partition of a toy circuit accepted.
func (r *rack) submitTo(c circuit.Circuit, seed uint64) *submitted {
	r.t.Helper()
	number := uint64(len(r.jobs) + 1)
	s, err := r.client.Submit(r.t.Context(), client.Request{
		Key: fmt.Sprintf("sector %d", number), Kind: c.ID(), Miner: "f01000", SectorNumber: &number,
		Input: bytes.NewReader(toy.Slice(seed)), Output: job.OutputPartitions,
	})
	r.check(err)
	j := r.accepted(s.Job, seed)
	j.circuit = c
	return j
}

// Two circuits whose parameters don't fit together take turns: each job proves, the pool's bound is never passed, what
// is in use is not evicted, and work on one circuit is grouped.
func TestCircuitsThatDoNotFitTogetherTakeTurns(t *testing.T) {
	t.Parallel()
	r, n := twoCircuits(t, "pause@gpu.mid-proof")
	const jobs = 12
	for i := range uint64(jobs) { // the first one is held until all are there
		r.submitTo([]circuit.Circuit{toy.Circuit(), toy.Other()}[i%2], i)
	}
	r.reached("gpu.mid-proof#1")
	r.letGo("gpu.mid-proof#1")
	looks := 0
	until(t, "all jobs end", func() bool {
		if b := r.book(n.name); b != nil {
			looks++
			if used := b.Used[ledger.PoolRAM]; used > oneCircuit {
				t.Errorf("%s of %s are booked", used, oneCircuit)
			}
		}
		return !slices.ContainsFunc(r.jobs, func(j *submitted) bool { return !r.record(j).State.Ended() })
	})
	r.waitDone()
	for _, j := range r.jobs {
		if p := r.record(j).Partitions[0]; len(p.Attempts) != 1 {
			t.Errorf("job %s took %d attempts although nothing failed: %+v", j.id, len(p.Attempts), p.Attempts)
		}
	}
	text := n.gpu.log.String()
	loads := strings.Count(text, "parameters are decoded in memory")
	if loads < 2 || loads > jobs/2 {
		t.Errorf("parameters were loaded %d times for %d jobs of two circuits by turns", loads, jobs)
	}
	if strings.Contains(text, "attempts use it") {
		t.Error("the eviction of something in use was tried")
	}
	t.Logf("%d loads, %d looks at the book", loads, looks)
	r.checkQuiet()
}

// assets asks the leader about assets.
func (r *rack) assets(q wire.AssetsRequest) (*wire.AssetsReply, error) {
	var reply wire.AssetsReply
	err := client.Ask(r.t.Context(), r.bus, wire.AdminSubject(wire.AdminAssets), &q, &reply, 50*time.Millisecond)
	return &reply, err
}

// holds gives the users of a node's assets by name, of those that are on the node.
func (r *rack) holds() map[string]int {
	r.t.Helper()
	reply, err := r.assets(wire.AssetsRequest{})
	r.check(err)
	users := map[string]int{}
	for _, n := range reply.Nodes {
		for _, a := range n.Assets {
			if a.Present {
				users[a.Name] = a.Users
			}
		}
	}
	return users
}

// Operators load a circuit before its first job, see that, and give it back. An idle one makes room, and what is not
// there is not found.
func TestOperatorsPreloadAndEvict(t *testing.T) {
	t.Parallel()
	r, n := twoCircuits(t)
	order := func(do, circuit string) error {
		_, err := r.assets(wire.AssetsRequest{Do: do, Node: n.name, Circuit: circuit})
		return err
	}
	if err := order(wire.AssetsEvict, "toy"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("evict of what is not loaded: %v", err)
	}
	if err := order(wire.AssetsPreload, "porep-3GiB"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("preload of what nobody knows: %v", err)
	}
	r.check(order(wire.AssetsPreload, "toy"))
	until(t, "the circuit is loaded", func() bool {
		held := r.holds()
		users, ok := held["srs:toy"]
		_, engine := held["engine:cpu.toy"]
		return ok && engine && users == 0
	})
	r.submitTo(toy.Circuit(), 1)
	r.waitDone()
	if loads := strings.Count(n.gpu.log.String(), "parameters are decoded in memory"); loads != 1 {
		t.Errorf("loaded %d times", loads)
	}
	until(t, "the other circuit is loaded in its place", func() bool {
		err := order(wire.AssetsPreload, "toy-other")
		if err != nil && fault.KindOf(err) != fault.Exhausted { // in use, or on its way out, for another moment
			t.Fatal(err)
		}
		held := r.holds()
		_, loaded := held["srs:toy-other"]
		_, there := held["srs:toy"]
		return loaded && !there
	})
	r.submitTo(toy.Other(), 2)
	r.waitDone()
	if loads := strings.Count(n.gpu.log.String(), "parameters are decoded in memory"); loads != 2 {
		t.Errorf("loaded %d times", loads)
	}
	until(t, "it is evicted", func() bool {
		err := order(wire.AssetsEvict, "toy-other")
		kind := fault.KindOf(err)
		if err != nil && kind != fault.Conflict && kind != fault.NotFound { // in use for another moment
			t.Fatal(err)
		}
		_, there := r.holds()["srs:toy-other"]
		return !there
	})
	r.checkQuiet()
}

// copyRate is the slowest there is: a copy of the toy's parameters takes ten seconds.
const copyRate = 64 * bytesize.KiB

// A node without parameters gets them from one that has them. The giver is killed in the middle of the copy: what has
// come is gone on with when it is back, the digest is checked, and the node proves.
func TestParametersAreCopiedFromAnotherNode(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.startCoordinator()
	giver := r.addNode("n1")
	giver.startSynth()
	give := "assets.listen=" + freePort(t)
	giver.startGPU(give, fmt.Sprintf("assets.rate_max=%d", copyRate))
	r.ready()
	empty := t.TempDir()
	taker := r.addNode("n2")
	taker.startSynth()
	taker.startGPU("prove.params=" + empty)
	order := func() error {
		_, err := r.assets(wire.AssetsRequest{Do: wire.AssetsCopy, Node: "n2", Circuit: "toy"})
		return err
	}
	until(t, "the copy is ordered", func() bool {
		err := order()
		if err != nil && fault.KindOf(err) != fault.NotFound { // n2 is not there yet
			t.Fatal(err)
		}
		return err == nil
	})
	part := func() int64 { return partBytes(t, empty) }
	whole := paramsBytes(t, r.params)
	until(t, "the copy has begun", func() bool { return part() > 0 })
	giver.gpu.kill()
	had := part()
	if had >= whole {
		t.Fatalf("%d bytes were copied before the giver was killed", had)
	}
	giver.startGPU(give) // and now it is in a hurry
	ordered := time.Now()
	until(t, "n2 has the parameters", func() bool {
		if time.Since(ordered) > 2*time.Second { // until the giver is back
			ordered = time.Now()
			_ = order()
		}
		if now := part(); now > 0 && now < had {
			t.Errorf("it goes on with %d bytes of the %d that had come", now, had)
		}
		v := r.view()
		return v != nil && slices.ContainsFunc(v.Nodes, func(n wire.NodeView) bool {
			return n.Node == "n2" && len(n.Devices) == 1 && slices.Contains(n.Devices[0].Circuits, "toy")
		})
	})
	if got := paramsBytes(t, empty); got != whole {
		t.Errorf("%d of %d bytes were copied", got, whole)
	}
	if err := order(); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a copy of what is there: %v", err)
	}
	giver.gpu.stops() // n2 is left
	r.submit(1)
	r.waitDone()
	if p := r.record(r.jobs[0]).Partitions[0]; p.Node != "n2" {
		t.Errorf("proved by %s", p.Node)
	}
	r.checkQuiet()
}

// partBytes is how much there is in a folder of a copy that goes on, 0 while there is none.
func partBytes(t *testing.T, folder string) int64 {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, ".*.part"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 {
		return 0
	}
	info, err := os.Stat(files[0])
	if err != nil {
		return 0
	}
	return info.Size()
}

// paramsBytes is the size of the toy's parameter file in a folder, 0 when it is not there.
func paramsBytes(t *testing.T, folder string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(folder, toy.Circuit().ParamsName()+srs.ParamsExtension))
	if err != nil {
		return 0
	}
	return info.Size()
}
