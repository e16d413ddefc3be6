package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
)

// powers is a circuit that raises a secret number to a power of two by squaring: small, and of any size.
type powers struct {
	name     string
	squares  int
	inputize int
}

func (p powers) ID() string         { return p.name }
func (p powers) ParamsName() string { return "test-" + p.name }
func (p powers) SharedAux() int     { return 0 }

func (p powers) Sections() []r1cs.Position {
	s := r1cs.NewSystem(r1cs.Start(), nil, nil)
	p.walk(s)
	return []r1cs.Position{r1cs.Start(), s.Position()}
}

func (p powers) Describe(_ int, rows r1cs.RowSink) { p.walk(r1cs.NewSystem(r1cs.Start(), rows, nil)) }

// walk squares again and again and makes the last numbers inputs.
func (p powers) walk(s *r1cs.System) {
	x := s.Alloc(fr.Element{})
	for range p.squares {
		factor := s.Lin(x)
		x = s.Product(&factor, &factor, nil)
	}
	for range p.inputize {
		s.Inputize(x)
	}
}

// scriptTestParams makes development parameters of two small circuits, test-small and test-large, in a folder.
func scriptTestParams(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 1, 1, "testparams DIR")
	folder := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(folder, 0o755))
	for _, c := range []powers{{"small", 5, 1}, {"large", 50, 3}} {
		scalars := generate.FromSeed("scripts", c.ID())
		_, err := generate.ToFolder(context.Background(), folder, c, scalars, generate.Options{Workers: 1})
		ts.Check(err)
	}
}

// oracleKeyName is the published name of the 2 KiB circuit's verifying key.
const oracleKeyName = "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-8-0-0-sha256_hasher-" +
	"032d3138d22506ec0082ed72b2dcba18df18477904e35bafee82b3793b06832f.vk"

// oracleManifest lists the key of the exact parameters as one for development.
const oracleManifest = `{"` + oracleKeyName + `":{"cid":"","digest":"0cc298754920d57c91710435db297b27",` +
	`"sector_size":2048,"development":true}}`

// scriptExactKey lays out a folder with the verifying key of the exact 2 KiB parameters, and beside it what Rust made
// under them: c1.json, sector.json and the proof.
func scriptExactKey(ts *testscript.TestScript, negated bool, args []string) {
	usageOf(ts, negated, args, 1, 1, "exactkey DIR")
	folder := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(folder, 0o755))
	for from, to := range map[string]string{
		"cli/testdata/oracle/2KiB.vk":                      filepath.Join(folder, oracleKeyName),
		"shared/proof/c1/testdata/2KiB-v1_1.c1.json":       ts.MkAbs("c1.json"),
		"shared/proof/c1/testdata/2KiB-v1_1.meta.json":     ts.MkAbs("sector.json"),
		"shared/prover/testdata/2KiB-v1_1.exact-proof.hex": ts.MkAbs("proof.hex"),
	} {
		content, err := os.ReadFile(filepath.Join(ts.Getenv("CHECKOUT"), filepath.FromSlash(from)))
		ts.Check(err)
		ts.Check(os.WriteFile(to, content, 0o600))
	}
	ts.Check(os.WriteFile(filepath.Join(folder, "parameters.json"), []byte(oracleManifest), 0o600))
}
