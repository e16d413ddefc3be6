//go:build toy && long

package workergpu_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
	"github.com/proofrack/proofrack/shared/wire"
)

// sector is a real Commit-Phase-1 output of 2 KiB.
func sector(t *testing.T) circuit.Input {
	t.Helper()
	const base = "../shared/proof/c1/testdata/2KiB-v1_1"
	var meta struct {
		ProverID string `json:"prover_id"`
		Sector   uint64 `json:"sector"`
	}
	text, err := os.ReadFile(base + ".meta.json")
	if err == nil {
		err = json.Unmarshal(text, &meta)
	}
	if err != nil {
		t.Fatal(err)
	}
	id, err := hex.DecodeString(meta.ProverID)
	if err != nil {
		t.Fatal(err)
	}
	c1, err := os.ReadFile(base + ".c1.json")
	if err != nil {
		t.Fatal(err)
	}
	claim := circuit.Claim{ProverID: [32]byte(id), SectorNumber: &meta.Sector}
	input, err := porep.Kind{}.Open(t.Context(), bytes.NewReader(c1), claim)
	if err != nil {
		t.Fatal(err)
	}
	return input
}

// A real sector through both workers. While it is worked on, every second or so shows progress: the leader takes 15 s
// without for death (B35), and the machine is as crowded as it is.
func TestLongRealSectorShowsProgressAllTheWay(t *testing.T) {
	r := newRack(t)
	input := sector(t)
	c := input.Circuit()
	_, err := generate.ToFolder(t.Context(), r.params, c, generate.FromSeed("t", c.ID()), generate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.startSynth("synth.circuits=" + c.ID())
	r.startGPU("prove.circuits="+c.ID(), "engine.stall_max=15s")
	r.ready(wire.RoleSynth)
	r.waitFor(2*time.Minute, "parameters are checked", func() bool {
		return r.beat(wire.RoleGPU).State == wire.StateReady
	})
	slice, err := input.Slice(0)
	if err != nil {
		t.Fatal(err)
	}
	id := r.job(0)
	object := r.putSlice(id, slice)
	a := r.claimWith(id, device, func(task *wire.SynthTask) {
		task.Circuit, task.Slice = c.ID(), object
		task.Amounts = ledger.Amounts{ledger.PoolRAM: 128 * bytesize.MiB, ledger.PoolSHM: 16 * bytesize.MiB}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	worst := make(chan time.Duration, 1)
	go func() { worst <- r.longestPause(ctx, a) }()
	d, err := r.results.Fetch(ctx)
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	var result wire.Result
	if err := wire.Decode(d.Message().Data, &result); err != nil {
		t.Fatal(err)
	}
	if result.Outcome != job.OutcomeOK {
		t.Fatal(faultText(result))
	}
	t.Logf("seconds %v", result.Seconds)
	key, err := srs.OpenKey(t.Context(), filepath.Join(r.params, c.ParamsName()+srs.KeyExtension), 0, srs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	inputs, err := input.PublicInputs(0)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := groth16.ParseProof(result.Proof)
	if err == nil {
		err = groth16.Verify(key.VerifyingKey, inputs, proof)
	}
	if err != nil {
		t.Error(err)
	}
	if pause := <-worst; pause > 5*time.Second {
		t.Errorf("no progress for %s", pause)
	} else {
		t.Logf("longest pause in progress %s", pause)
	}
}

// longestPause watches an attempt's progress in beats until ctx ends.
func (r *rack) longestPause(ctx context.Context, a job.Attempt) (worst time.Duration) {
	last, moved := uint64(0), time.Now()
	for ctx.Err() == nil {
		for _, role := range []string{wire.RoleSynth, wire.RoleGPU} {
			for _, w := range r.beat(role).Running {
				if w.Attempt == a && w.Progress != last {
					worst = max(worst, time.Since(moved))
					last, moved = w.Progress, time.Now()
				}
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return worst
}
