package verb

import (
	"context"
	"fmt"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/prover"
)

// partitions are a checked input cut for proving. The input itself is not needed any more.
type partitions struct {
	circuit circuit.Circuit
	slices  [][]byte
	inputs  [][]fr.Element
}

// cut takes all partitions of an input.
func cut(input circuit.Input) (*partitions, error) {
	inputs, err := publicInputs(input)
	if err != nil {
		return nil, err
	}
	p := &partitions{circuit: input.Circuit(), inputs: inputs}
	for k := range inputs {
		slice, err := input.Slice(k)
		if err != nil {
			return nil, err
		}
		p.slices = append(p.slices, slice)
	}
	return p, nil
}

// stageTimes are how long the stages of proving took, summed over partitions, in seconds.
type stageTimes struct {
	Synthesis float64 `json:"synthesis"`
	Quotient  float64 `json:"quotient"`
	H         float64 `json:"msm_h"`
	L         float64 `json:"msm_l"`
	A         float64 `json:"msm_a"`
	B1        float64 `json:"msm_b_g1"`
	B2        float64 `json:"msm_b_g2"`
	Assemble  float64 `json:"assemble"`
	Verify    float64 `json:"verify"`
}

// add counts one partition.
func (s *stageTimes) add(synthesis time.Duration, t prover.Timings) {
	s.Synthesis += seconds(synthesis)
	s.Quotient += seconds(t.Quotient)
	s.H += seconds(t.H)
	s.L += seconds(t.L)
	s.A += seconds(t.A)
	s.B1 += seconds(t.B1)
	s.B2 += seconds(t.B2)
	s.Assemble += seconds(t.Assemble)
	s.Verify += seconds(t.Verify)
}

// provingRun proves partitions one after another, in one reused segment.
type provingRun struct {
	work    *partitions
	params  prover.Params
	workers int
	check   bool // also check every constraint by plain arithmetic
	stage   func(partition int, name string)
	times   stageTimes
}

// prove gives the proof bytes of all partitions in order. Each proof was verified by the device; in the end all are
// parsed back and verified together, as a stranger would.
func (r *provingRun) prove(ctx context.Context) ([]byte, error) {
	layout, err := compact.LayoutOf(r.work.circuit)
	if err != nil {
		return nil, err
	}
	memory := layout.Memory()
	current := 0
	device := prover.NewCPU(prover.CPUConfig{Workers: r.workers, Observe: func(s groth16.Stage) func() {
		r.stage(current, string(s))
		return func() {}
	}})
	defer device.Close()
	var proof []byte
	for k := range r.work.slices {
		current = k
		one, err := r.provePartition(ctx, device, k, memory)
		if err != nil {
			return nil, err // it names the partition
		}
		proof = one.Append(proof)
	}
	start := time.Now()
	key, err := groth16.Prepare(r.params.SRS.Key)
	if err != nil {
		return nil, err
	}
	if err := verifyBytes(key, r.work.inputs, proof); err != nil {
		return nil, err
	}
	r.times.Verify += seconds(time.Since(start))
	return proof, nil
}

// provePartition synthesizes one partition and proves it.
func (r *provingRun) provePartition(
	ctx context.Context, device prover.Device, k int, memory []byte,
) (*groth16.Proof, error) {
	witness, err := r.work.circuit.Decode(r.work.slices[k])
	if err != nil {
		return nil, fmt.Errorf("decode slice of partition %d: %w", k, err)
	}
	r.stage(k, "synthesis")
	start := time.Now()
	job := compact.Job{Circuit: r.work.circuit, Witness: witness, Partition: k, Workers: r.workers}
	segment, err := job.Synthesize(ctx, memory)
	if err != nil {
		return nil, err
	}
	if err := segment.Verify(r.workers); err != nil {
		return nil, fmt.Errorf("read segment of partition %d: %w", k, err)
	}
	synthesis := time.Since(start)
	if r.check {
		r.stage(k, "check of every constraint")
		if err := segment.Check(r.work.circuit, r.workers); err != nil {
			return nil, fmt.Errorf("check partition %d: %w", k, err)
		}
	}
	pending, err := device.Start(ctx, prover.Source{Segment: segment}, r.params)
	if err != nil {
		return nil, err
	}
	proof, err := pending.Finish(ctx)
	if err != nil {
		return nil, err
	}
	r.times.add(synthesis, pending.Timings())
	return proof, nil
}

// verifyBytes parses the proofs of all partitions and verifies them under one key.
func verifyBytes(key *groth16.PreparedKey, inputs [][]fr.Element, proof []byte) error {
	proofs, err := groth16.ParseProofs(proof, len(inputs))
	if err != nil {
		return fail(badInput, "", "read proof: %w", err)
	}
	return key.VerifyBatch(inputs, proofs)
}
