//go:build long

package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
)

// A real sector of 2 KiB in a message of 60 MB, as a 32 GiB sector's is, all the way: the input goes by reference, the
// proof comes back, and so does that of the same input in another form.
func TestLongGatewayProvesARealSector(t *testing.T) {
	r := newRack(t)
	r.params = t.TempDir()
	c1, input := r.real("2KiB-v1_1")
	circuit := input.Circuit()
	_, err := generate.ToFolder(t.Context(), r.params, circuit, generate.FromSeed("e2e", circuit.ID()), generate.Options{})
	r.check(err)
	r.circuits = circuit.ID()
	r.startCoordinator("times.heartbeat=2s", "times.lease=15s")
	slow := []string{"worker.heartbeat=2s", "worker.ack_wait=30s", "worker.keep_every=10s", "worker.stall_max=2m"}
	n := r.addNode("n1")
	n.startSynth(append([]string{"synth.scratch_bytes=96MiB"}, slow...)...)
	n.startGPU(append([]string{"engine.stall_max=1m", "engine.start_max=1m"}, slow...)...)
	untilWithin(t, 3*time.Minute, "parameters are looked at", func() bool {
		v := r.view()
		return v != nil && v.Ready && len(v.Nodes) == 1 && v.Nodes[0].Ready
	})
	_, target := r.startGateway("test.kind=porep")
	c := newCurio(t, target)

	envelope, err := json.Marshal(map[string]any{
		"SectorNum": 4243, "Phase1Out": base64.StdEncoding.EncodeToString(c1), "SectorSize": 2048,
	})
	r.check(err)
	large := append(bytes.TrimSuffix(envelope, []byte("}")), bytes.Repeat([]byte(" "), 60_000_000)...)
	sector := func(text []byte) []field {
		return []field{
			{1, "porep-1000-4243"}, {2, kindPoRep}, {3, 2048}, {4, 5}, {5, 2}, {10, text}, {20, 4243}, {21, 1000},
		}
	}
	accepted := c.must("SubmitProof", sector(append(large, '}'))...)
	id, err := job.ParseID(string(accepted.texts[1]))
	r.check(err)
	j := &submitted{id: id, circuit: circuit}
	for i := range input.PartitionCount() {
		public, err := input.PublicInputs(i)
		r.check(err)
		j.public = append(j.public, public)
	}
	r.jobs = append(r.jobs, j)
	untilWithin(t, 10*time.Minute, "the job ends", func() bool { return r.record(j).State.Ended() })
	r.waitDone()
	again := c.proved(c.must("Prove", field{1, sector(c1)}))
	if again.numbers[2] != statusCompleted || string(again.texts[1]) != string(id) ||
		!bytes.Equal(again.texts[3], r.proof(j)) {
		t.Errorf("status %d of job %s: %q", again.numbers[2], again.texts[1], again.texts[4])
	}
	r.checkQuiet()
}
