package assemble_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/coordinator/internal/assemble"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/groth16/groth16test"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/proof/toy"
)

// inputs are what the store would give.
type inputs struct {
	lists [][]fr.Element
	err   error
	reads int
}

func (i *inputs) Inputs(context.Context, *job.Record) ([][]fr.Element, error) {
	i.reads++
	return i.lists, i.err
}

// fixture is a job of two partitions of the toy circuit, with their proofs.
func fixture(t *testing.T) (assemble.Config, *inputs, *job.Record) {
	t.Helper()
	c := toy.Circuit()
	params, artifact := groth16test.Params(t, c)
	prover, err := groth16.NewProver(params, artifact)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(prover.Close)
	r := &job.Record{ID: "01890a5d-ac96-774b-bcce-b302099a8057", Circuit: c.ID(), State: job.Active}
	in := &inputs{}
	for seed := range uint64(2) {
		slice := toy.Slice(seed)
		witness, err := c.Decode(slice)
		if err != nil {
			t.Fatal(err)
		}
		in.lists = append(in.lists, witness.PublicInputs())
		pending, err := prover.Start(t.Context(), groth16test.Segment(t, c, slice))
		if err != nil {
			t.Fatal(err)
		}
		proof, err := pending.Finish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bytes := proof.Bytes()
		r.Partitions = append(r.Partitions, job.Partition{Stage: job.Verified, Proof: bytes[:]})
	}
	return assemble.Config{
		ParamsDir: filepath.Dir(params.Path), DigestCache: filepath.Join(t.TempDir(), "digests.json"), InputsKept: 1,
		Find: func(id string) (circuit.Circuit, error) {
			if id != c.ID() {
				return nil, errors.New("no such circuit")
			}
			return c, nil
		},
	}, in, r
}

// Invariant 4.
func TestWhatDoesNotVerifyDoesNotPass(t *testing.T) {
	t.Parallel()
	config, in, r := fixture(t)
	v, err := assemble.New(config, in)
	if err != nil {
		t.Fatal(err)
	}
	good := r.Partitions[0].Proof
	if err := v.Partition(t.Context(), r, 0, good); err != nil {
		t.Fatal(err)
	}
	for name, proof := range map[string][]byte{
		"another partition's": r.Partitions[1].Proof, "too short": good[:191], "empty": nil, "zero": make([]byte, 192),
	} {
		if err := v.Partition(t.Context(), r, 0, proof); fault.KindOf(err) != fault.Device {
			t.Errorf("%s: %v", name, err)
		}
	}
	proof, _, err := v.Job(t.Context(), r)
	if err != nil || len(proof) != 2*192 {
		t.Fatalf("job: %d bytes, %v", len(proof), err)
	}
	r.Partitions[1].Proof = good
	if _, bad, err := v.Job(t.Context(), r); fault.KindOf(err) != fault.Corrupt || len(bad) != 1 || bad[0] != 1 {
		t.Errorf("a swapped proof: partitions %v, %v", bad, err)
	}
	r.Partitions[1].Stage = job.Proving
	if _, _, err := v.Job(t.Context(), r); fault.KindOf(err) != fault.Conflict {
		t.Errorf("an unfinished job: %v", err)
	}
	if in.reads != 1 {
		t.Errorf("inputs were read %d times", in.reads)
	}
}

func TestAMissingKeyIsWaitedFor(t *testing.T) {
	t.Parallel()
	config, in, r := fixture(t)
	from := config.ParamsDir
	config.ParamsDir = t.TempDir()
	v, err := assemble.New(config, in)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Partition(t.Context(), r, 0, r.Partitions[0].Proof); fault.KindOf(err) != fault.Transient {
		t.Errorf("no key: %v", err)
	}
	c, err := config.Find(r.Circuit)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{c.ParamsName() + srs.KeyExtension, srs.ManifestName} {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(config.ParamsDir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Ready(t.Context(), r.Circuit); err != nil {
		t.Errorf("the key has come: %v", err)
	}
	r.Circuit = "unknown"
	if err := v.Partition(t.Context(), r, 0, r.Partitions[0].Proof); fault.KindOf(err) != fault.Transient {
		t.Errorf("unknown circuit: %v", err)
	}
}

func TestLostInputsKeepTheirKind(t *testing.T) {
	t.Parallel()
	config, in, r := fixture(t)
	in.err = fault.New(fault.NotFound, "gone")
	v, err := assemble.New(config, in)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Partition(t.Context(), r, 0, r.Partitions[0].Proof); fault.KindOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
}
