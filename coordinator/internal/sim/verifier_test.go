package sim_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/coordinator/internal/assemble"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/toy"
)

// verdicts keeps what the real verifier said of a proof, for all runs of the process: the runs have few different
// partitions and proofs, and to verify one takes longer than all else that is done for it.
type verdicts struct {
	mu   sync.Mutex
	said map[string]verdict
}

// verdict is what it said; Kind and Why are its error's, if there was one.
type verdict struct {
	Proof []byte
	Bad   []int
	Kind  fault.Kind
	Why   string
}

func verdictOf(proof []byte, bad []int, err error) verdict {
	v := verdict{Proof: proof, Bad: bad}
	if err != nil {
		v.Kind, v.Why = fault.KindOf(err), err.Error()
	}
	return v
}

func (v *verdict) err() error {
	if v.Why == "" {
		return nil
	}
	return fault.New(v.Kind, "%s", v.Why)
}

// verifier is a real one that need not say things twice.
type verifier struct {
	*assemble.Verifier
	known *verdicts
}

// look gives what is known under a key, or asks. Trouble that may pass is not kept.
func (v *verdicts) look(key string, ask func() verdict) verdict {
	v.mu.Lock()
	have, ok := v.said[key]
	v.mu.Unlock()
	if ok {
		return have
	}
	have = ask()
	if have.Why == "" || have.Kind == fault.Device || have.Kind == fault.Corrupt {
		v.mu.Lock()
		v.said[key] = have
		v.mu.Unlock()
	}
	return have
}

// prepare asks the real verifier about all that an honest run can ask, so that no run reads files or computes for long.
func (p *proved) prepare(ctx context.Context) error {
	all := &allInputs{p}
	real, err := p.newVerifier(all)
	if err != nil {
		return err
	}
	v := &verifier{real, &p.verdicts}
	for i := range p.slices {
		r := p.record([]int{i})
		for _, proof := range p.proofs {
			if err := v.Partition(ctx, r, 0, proof); err != nil && fault.KindOf(err) != fault.Device {
				return err
			}
		}
	}
	for n := 1; n <= partitionsMax; n++ {
		for which := range int(math.Pow(seedsMax, float64(n))) {
			var seeds []int
			for range n {
				seeds = append(seeds, which%seedsMax)
				which /= seedsMax
			}
			if _, _, err := v.Job(ctx, p.record(seeds)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *proved) newVerifier(inputs assemble.Inputs) (*assemble.Verifier, error) {
	return assemble.New(assemble.Config{
		ParamsDir: p.dir, DigestCache: p.dir + "/digests.json", Find: findCircuit, InputsKept: 64,
	}, inputs)
}

// record is one of a job that was proved, of partitions that are made from seeds.
func (p *proved) record(seeds []int) *job.Record {
	r := &job.Record{ID: job.ID(fmt.Sprint(seeds)), Circuit: toy.Circuit().ID()}
	for _, seed := range seeds {
		sum := digest(p.slices[seed])
		r.Partitions = append(r.Partitions, job.Partition{
			Stage: job.Verified, Slice: job.Object{SHA256: sum}, Proof: p.proofs[sum],
		})
	}
	return r
}

// allInputs gives the public inputs of such a record.
type allInputs struct{ p *proved }

func (a *allInputs) Inputs(_ context.Context, r *job.Record) (out [][]fr.Element, err error) {
	for i := range r.Partitions {
		for seed, slice := range a.p.slices {
			if digest(slice) == r.Partitions[i].Slice.SHA256 {
				out = append(out, a.p.inputs[seed])
			}
		}
	}
	return out, nil
}

// Partition is that of assemble.Verifier. A partition's public inputs follow from its slice.
func (v *verifier) Partition(ctx context.Context, r *job.Record, partition int, proof []byte) error {
	key := "one " + r.Partitions[partition].Slice.SHA256 + string(proof)
	said := v.known.look(key, func() verdict {
		return verdictOf(nil, nil, v.Verifier.Partition(ctx, r, partition, proof))
	})
	return said.err()
}

// Job is that of assemble.Verifier.
func (v *verifier) Job(ctx context.Context, r *job.Record) (proof []byte, bad []int, err error) {
	var key strings.Builder
	key.WriteString("all ")
	for i := range r.Partitions {
		p := &r.Partitions[i]
		key.WriteString(p.Slice.SHA256 + string(p.Stage) + string(p.Proof))
	}
	said := v.known.look(key.String(), func() verdict { return verdictOf(v.Verifier.Job(ctx, r)) })
	return said.Proof, said.Bad, said.err()
}
