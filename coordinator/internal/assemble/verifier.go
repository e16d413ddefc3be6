package assemble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sync/singleflight"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// Config says where keys are.
type Config struct {
	// ParamsDir is the folder of the parameter files; only the .vk files are read.
	ParamsDir string
	// DigestCache is as in srs.Options.
	DigestCache string
	// Find gives the circuit of a name, as catalog.Find does.
	Find func(id string) (circuit.Circuit, error)
	// InputsKept is of how many jobs the public inputs are kept in memory.
	InputsKept int
}

// InputsKeptDefault is enough for the jobs that are proved at the same time; 10 KiB per partition.
const InputsKeptDefault = 256

// Validate tells all that is wrong.
func (c *Config) Validate() error {
	var errs []error
	if c.ParamsDir == "" {
		errs = append(errs, errors.New("params_dir must be given"))
	}
	if c.Find == nil {
		errs = append(errs, errors.New("find must be given"))
	}
	if c.InputsKept < 1 {
		errs = append(errs, fmt.Errorf("inputs_kept must be at least 1, not %d", c.InputsKept))
	}
	return errors.Join(errs...)
}

// Inputs reads a job's public inputs; see store.Store.
type Inputs interface {
	Inputs(ctx context.Context, r *job.Record) ([][]fr.Element, error)
}

// Verifier verifies proofs. All methods may be called from several goroutines.
type Verifier struct {
	cfg    Config
	inputs Inputs
	flight singleflight.Group

	mu    sync.Mutex
	keys  map[string]*groth16.PreparedKey
	jobs  map[job.ID][][]fr.Element
	order []job.ID // of jobs, oldest first
}

// New makes a verifier that has opened nothing yet.
func New(cfg Config, inputs Inputs) (*Verifier, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure verifier: %w", err)
	}
	return &Verifier{
		cfg: cfg, inputs: inputs, keys: map[string]*groth16.PreparedKey{}, jobs: map[job.ID][][]fr.Element{},
	}, nil
}

// Partition verifies one partition's proof.
func (v *Verifier) Partition(ctx context.Context, r *job.Record, partition int, proof []byte) error {
	key, inputs, err := v.prepare(ctx, r)
	if err != nil {
		return fmt.Errorf("verify partition %d of job %s: %w", partition, r.ID, err)
	}
	parsed, err := groth16.ParseProof(proof)
	if err == nil {
		err = key.Verify(inputs[partition], parsed)
	}
	if err != nil {
		return fault.As(blame(err), fmt.Errorf("verify partition %d of job %s: %w", partition, r.ID, err))
	}
	return nil
}

// Job puts the proofs of a job together and verifies them all. The error of a bad one names the partitions.
func (v *Verifier) Job(ctx context.Context, r *job.Record) (proof []byte, bad []int, err error) {
	key, inputs, err := v.prepare(ctx, r)
	if err != nil {
		return nil, nil, fmt.Errorf("verify job %s: %w", r.ID, err)
	}
	for i := range r.Partitions {
		if r.Partitions[i].Stage != job.Verified {
			return nil, nil, fault.New(fault.Conflict, "verify job %s: partition %d is %s", r.ID, i, r.Partitions[i].Stage)
		}
		proof = append(proof, r.Partitions[i].Proof...)
	}
	parsed, err := groth16.ParseProofs(proof, len(r.Partitions))
	if err == nil {
		err = key.VerifyBatch(inputs, parsed)
	}
	if err != nil {
		var batch *groth16.BatchError
		if errors.As(err, &batch) {
			bad = batch.Bad
		}
		return nil, bad, fault.As(fault.Corrupt, fmt.Errorf("verify job %s: %w", r.ID, err))
	}
	return proof, nil, nil
}

// blame tells who is at fault when a proof does not hold. A wrong number of inputs is not the device's doing.
func blame(err error) fault.Kind {
	if errors.Is(err, groth16.ErrInputCount) {
		return fault.Corrupt
	}
	return fault.Device
}

// prepare gives key and inputs of a job.
func (v *Verifier) prepare(ctx context.Context, r *job.Record) (*groth16.PreparedKey, [][]fr.Element, error) {
	key, err := v.key(ctx, r.Circuit)
	if err != nil {
		return nil, nil, err
	}
	v.mu.Lock()
	inputs, ok := v.jobs[r.ID]
	v.mu.Unlock()
	if ok {
		return key, inputs, nil
	}
	if inputs, err = v.inputs.Inputs(ctx, r); err != nil {
		return nil, nil, err
	}
	v.keep(r.ID, inputs)
	return key, inputs, nil
}

func (v *Verifier) keep(id job.ID, inputs [][]fr.Element) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.jobs[id]; ok {
		return
	}
	if len(v.order) >= v.cfg.InputsKept {
		delete(v.jobs, v.order[0])
		v.order = v.order[1:]
	}
	v.jobs[id], v.order = inputs, append(v.order, id)
}

// Ready opens the key of a circuit, so that later verifications do not wait for it.
func (v *Verifier) Ready(ctx context.Context, circuitID string) error {
	_, err := v.key(ctx, circuitID)
	return err
}

// AnyReady is nil when proofs of at least one of the circuits can be verified.
func (v *Verifier) AnyReady(ctx context.Context, circuitIDs []string) error {
	var first error
	for _, id := range circuitIDs {
		err := v.Ready(ctx, id)
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) { // one that is there and wrong says more than those that are not there
			return err
		}
		if first == nil {
			first = err
		}
	}
	return fmt.Errorf("no verifying key of any circuit in %s: %w", v.cfg.ParamsDir, first)
}

// key opens a key once; a failure is tried again by the next caller, since the file may come.
func (v *Verifier) key(ctx context.Context, circuitID string) (*groth16.PreparedKey, error) {
	v.mu.Lock()
	key, ok := v.keys[circuitID]
	v.mu.Unlock()
	if ok {
		return key, nil
	}
	opened, err, _ := v.flight.Do(circuitID, func() (any, error) { return v.open(ctx, circuitID) })
	if err != nil {
		return nil, err
	}
	key, _ = opened.(*groth16.PreparedKey)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keys[circuitID] = key
	return key, nil
}

func (v *Verifier) open(ctx context.Context, circuitID string) (*groth16.PreparedKey, error) {
	c, err := v.cfg.Find(circuitID)
	if err != nil {
		return nil, fault.As(fault.Transient, fmt.Errorf("open verifying key: %w", err))
	}
	path := filepath.Join(v.cfg.ParamsDir, c.ParamsName()+srs.KeyExtension)
	opened, err := srs.OpenKey(ctx, path, circuit.Totals(c).Inputs, srs.Options{DigestCache: v.cfg.DigestCache})
	if err != nil {
		return nil, fault.WithHint(fault.As(fault.Transient, fmt.Errorf("open verifying key of %s: %w", circuitID, err)),
			"put the circuit's .vk file into the coordinator's parameter folder")
	}
	key, err := groth16.Prepare(opened.VerifyingKey)
	if err != nil {
		return nil, fmt.Errorf("prepare verifying key of %s: %w", circuitID, err)
	}
	return key, nil
}
