package sim_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/shared/proof/artifact"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
	"github.com/proofrack/proofrack/shared/proof/toy"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if made.dir != "" && os.Getenv("SIM_MADE") == "" {
		_ = os.RemoveAll(made.dir)
	}
	os.Exit(code)
}

// proved are toy proofs made once for all runs: real ones, which verify.
type proved struct {
	dir      string // of the parameter files
	slices   [][]byte
	inputs   [][]fr.Element
	proofs   map[string][]byte // by the slice's digest
	verdicts verdicts
	err      error
}

var (
	made     proved
	makeOnce sync.Once
)

// seedsMax is how many different partitions there are, partitionsMax how many a job has at most.
const (
	seedsMax      = 3
	partitionsMax = 4
)

// proofs makes them, or reads what the process that started this one has made.
func proofs(t testing.TB) *proved {
	t.Helper()
	makeOnce.Do(func() {
		if folder := os.Getenv("SIM_MADE"); folder != "" {
			made.err = made.read(folder)
			return
		}
		if made.err = made.make(context.Background()); made.err == nil {
			made.err = made.write()
		}
	})
	if made.err != nil {
		t.Fatal(made.err)
	}
	return &made
}

// kept is what is read and written.
type kept struct {
	Slices [][]byte
	Inputs [][]fr.Element
	Proofs map[string][]byte
	Said   map[string]verdict
}

const madeFile = "made.gob"

func (p *proved) write() error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(kept{p.slices, p.inputs, p.proofs, p.verdicts.said}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.dir, madeFile), b.Bytes(), 0o600)
}

func (p *proved) read(folder string) error {
	data, err := os.ReadFile(filepath.Join(folder, madeFile))
	if err != nil {
		return err
	}
	var k kept
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&k); err != nil {
		return err
	}
	p.dir, p.slices, p.inputs, p.proofs, p.verdicts.said = folder, k.Slices, k.Inputs, k.Proofs, k.Said
	return nil
}

// otherThan is a proof of something else.
func (p *proved) otherThan(slice string) []byte {
	for _, s := range p.slices {
		if d := digest(s); d != slice {
			return p.proofs[d]
		}
	}
	return nil
}

func (p *proved) make(ctx context.Context) (err error) {
	if p.dir, err = os.MkdirTemp("", "sim-test"); err != nil {
		return err
	}
	c := toy.Circuit()
	files, err := generate.ToFolder(ctx, p.dir, c, generate.FromSeed("test", c.ID()), generate.Options{})
	if err != nil {
		return err
	}
	a, err := artifact.Build(ctx, c, 1)
	if err != nil {
		return err
	}
	params, err := srs.Open(ctx, files.ParamsPath, srs.CountsOf(a.Totals, a.Density),
		srs.Options{DigestCache: filepath.Join(p.dir, "digests.json")})
	if err != nil {
		return err
	}
	defer params.Close()
	prover, err := groth16.NewProver(params, a)
	if err != nil {
		return err
	}
	defer prover.Close()
	p.proofs, p.verdicts.said = map[string][]byte{}, map[string]verdict{}
	for seed := range uint64(seedsMax) {
		if err := p.prove(ctx, prover, seed); err != nil {
			return err
		}
	}
	return p.prepare(ctx)
}

func (p *proved) prove(ctx context.Context, prover *groth16.Prover, seed uint64) error {
	c, slice := toy.Circuit(), toy.Slice(seed)
	layout, err := compact.LayoutOf(c)
	if err != nil {
		return err
	}
	witness, err := c.Decode(slice)
	if err != nil {
		return err
	}
	work := compact.Job{Circuit: c, Witness: witness, Workers: 1}
	segment, err := work.Synthesize(ctx, layout.Memory())
	if err != nil {
		return err
	}
	pending, err := prover.Start(ctx, segment)
	if err != nil {
		return err
	}
	proof, err := pending.Finish(ctx)
	if err != nil {
		return err
	}
	bytes := proof.Bytes()
	p.slices = append(p.slices, slice)
	p.inputs = append(p.inputs, witness.PublicInputs())
	p.proofs[digest(slice)] = bytes[:]
	return nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
