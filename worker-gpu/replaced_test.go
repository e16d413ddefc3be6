//go:build toy

package workergpu_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

// replaceParams puts other parameters of the toy in place of those that are there.
func (r *rack) replaceParams(seed string) {
	r.t.Helper()
	c := toy.Circuit()
	_, err := generate.ToFolder(r.t.Context(), r.params, c, generate.FromSeed(seed, c.ID()),
		generate.Options{Replace: true})
	if err != nil {
		r.t.Fatal(err)
	}
}

// verifyingKey is the one of the parameters that are there now.
func (r *rack) verifyingKey() *groth16.PreparedKey {
	r.t.Helper()
	path := filepath.Join(r.params, toy.Circuit().ParamsName()+srs.KeyExtension)
	opened, err := srs.OpenKey(r.t.Context(), path, 0, srs.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	key, err := groth16.Prepare(opened.VerifyingKey)
	if err != nil {
		r.t.Fatal(err)
	}
	return key
}

// A parameter file that is replaced is used as soon as the proofs are done that use the old one: what began with the
// old one is proved with it, what comes later with the new one, without a restart of the worker. A file that must not
// be used makes the circuit not ready, and names itself, until there is a good one.
func TestAReplacedParameterFileIsTakenUpInMidRun(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{"streamed": nil, "decoded": {"prove.decoded=true"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			r.makeParams()
			r.key = r.verifyingKey()
			r.startSynth()
			gpu := r.startGPU(append(settings, "test.folder="+r.hooks, "test.hooks=pause@gpu.mid-proof")...)
			r.ready(wire.RoleSynth)
			r.ready(wire.RoleGPU)
			first := r.circuit().ParamsDigest
			a := r.claim(r.job(1))
			r.wait("the proof has begun", func() bool { return r.reached("gpu.mid-proof#1") })
			before := engines(gpu)
			r.replaceParams("other")
			r.wait("the new file is seen", func() bool {
				return strings.Contains(gpu.log.String(), "the parameter file was replaced") && !r.circuit().Ready
			})
			r.noResult()
			if now := engines(gpu); len(now) != 1 || now[0] != before[0] {
				t.Fatalf("engine %v was replaced by %v in the middle of a proof", before, now)
			}
			r.letGo("gpu.mid-proof#1")
			r.wantProof(r.result(), a, 1)
			r.wait("the new file is in use", func() bool {
				c := r.circuit()
				return c.Ready && c.ParamsDigest != first && c.ParamsDigest != ""
			})
			second := r.circuit().ParamsDigest
			r.key = r.verifyingKey()
			a = r.claim(r.job(2))
			result := r.result()
			r.wantProof(result, a, 2)
			if result.ParamsDigest != second {
				t.Errorf("proved with parameters %s, not %s", result.ParamsDigest, second)
			}
			r.spoil()
			r.wait("the bad file is refused", func() bool {
				c := r.circuit()
				return !c.Ready && strings.Contains(c.Missing, paramsFile(r)) && strings.Contains(c.Missing, "digest")
			})
			r.replaceParams("third")
			r.wait("a good one is in use", func() bool {
				c := r.circuit()
				return c.Ready && c.ParamsDigest != second
			})
			r.key = r.verifyingKey()
			a = r.claim(r.job(3))
			r.wantProof(r.result(), a, 3)
			r.clean()
		})
	}
}

// spoil puts a file in place of the parameters that differs in one byte.
func (r *rack) spoil() {
	r.t.Helper()
	path := paramsFile(r)
	data, err := os.ReadFile(path)
	if err == nil {
		data[len(data)/2] ^= 1
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}
