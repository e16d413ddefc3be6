//go:build long

package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
)

// real is a Commit-Phase-1 output of miner f01000, sector 4243.
func (r *rack) real(name string) ([]byte, circuit.Input) {
	r.t.Helper()
	c1, err := os.ReadFile(filepath.Join("../shared/proof/c1/testdata", name+".c1.json"))
	r.check(err)
	miner, err := sdr.ParseMiner("f01000")
	r.check(err)
	number := uint64(4243)
	input, err := porep.Kind{}.Open(r.t.Context(), bytes.NewReader(c1),
		circuit.Claim{ProverID: sdr.ProverID(miner), SectorNumber: &number})
	r.check(err)
	return c1, input
}

// submitReal submits such an output under a key.
func (r *rack) submitReal(key string, c1 []byte, input circuit.Input) {
	r.t.Helper()
	number := uint64(4243)
	request := client.Request{Key: key, Miner: "f01000", SectorNumber: &number, Input: bytes.NewReader(c1)}
	if input.ForAggregation() {
		request.Output = job.OutputPartitions
	}
	s, err := r.client.Submit(r.t.Context(), request)
	r.check(err)
	j := &submitted{id: s.Job, circuit: input.Circuit()}
	for i := range input.PartitionCount() {
		public, err := input.PublicInputs(i)
		r.check(err)
		j.public = append(j.public, public)
	}
	r.jobs = append(r.jobs, j)
}

// Real sectors of several families over two nodes: interactive, synthetic, and non-interactive with 13 partitions.
// Leases are the real ones, since proofs are.
func TestLongRealSectorsOverTwoNodes(t *testing.T) {
	r := newRack(t)
	r.params = t.TempDir()
	names := []string{"2KiB-v1_1", "2KiB-non-interactive", "2KiB-synthetic"}
	var circuits []string
	for _, name := range names {
		_, input := r.real(name)
		c := input.Circuit()
		if slices.Contains(circuits, c.ID()) {
			continue
		}
		_, err := generate.ToFolder(t.Context(), r.params, c, generate.FromSeed("e2e", c.ID()), generate.Options{})
		r.check(err)
		circuits = append(circuits, c.ID())
	}
	r.circuits = strings.Join(circuits, ",")
	t.Logf("circuits %s", r.circuits)
	r.startCoordinator("times.heartbeat=2s", "times.lease=15s")
	r.startCoordinator("times.heartbeat=2s", "times.lease=15s")
	slow := []string{"worker.heartbeat=2s", "worker.ack_wait=30s", "worker.keep_every=10s", "worker.stall_max=2m"}
	for _, name := range []job.Node{"n1", "n2"} {
		n := r.addNode(name)
		n.startSynth(append([]string{"synth.scratch_bytes=96MiB"}, slow...)...)
		n.startGPU(append([]string{"engine.stall_max=1m", "engine.start_max=1m"}, slow...)...)
	}
	untilWithin(t, 3*time.Minute, "parameters are looked at", func() bool {
		v := r.view()
		return v != nil && v.Ready && len(v.Nodes) == 2 && v.Nodes[0].Ready && v.Nodes[1].Ready
	})
	for _, name := range names {
		c1, input := r.real(name)
		r.submitReal(name, c1, input)
	}
	for _, j := range r.jobs {
		untilWithin(t, 20*time.Minute, "job "+string(j.id)+" ends", func() bool { return r.record(j).State.Ended() })
	}
	r.waitDone()
	r.checkQuiet()
}
