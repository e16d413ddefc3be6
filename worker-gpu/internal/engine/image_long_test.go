//go:build toy && long

package engine_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
	"github.com/proofrack/proofrack/worker-gpu/internal/residency"
)

// processorTime is what a process has used since its start.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * time.Second / 100
}

// A new engine that gets an image has used at most a twentieth of the processor time, when it is ready to prove,
// that the first one used to check and decode the parameters. PARAMS names a folder with the parameters of the
// circuit, else they are generated.
func TestLongANewEngineIsReadyInATwentiethOfTheTime(t *testing.T) {
	const id = "porep-8MiB"
	folder, cache := os.Getenv("PARAMS"), t.TempDir()
	if folder == "" {
		folder = t.TempDir()
		c, err := catalog.Find(id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := generate.ToFolder(t.Context(), folder, c, generate.FromSeed("t", id), generate.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	setup := config(folder, nil)
	setup.Setup.Cache, setup.Setup.Workers = cache, 2
	setup.StallMax, setup.StageMax = 2*time.Minute, 10*time.Minute
	first := spawn(t, setup)
	began := time.Now()
	loaded, err := first.Load(t.Context(), id, nil)
	if err != nil {
		t.Fatal(err)
	}
	fill := func(f *os.File) error { return first.WriteImage(t.Context(), id, f) }
	image, release, err := residency.NewImages(nil).Hold(t.Context(), id, loaded.Digest, int64(loaded.Image), fill)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = release() }()
	whole, took := processorTime(t, first.PID()), time.Since(began)
	first.Kill("for the test")
	<-first.Gone()
	again := spawn(t, setup)
	began = time.Now()
	if _, err := again.Load(t.Context(), id, image); err != nil {
		t.Fatal(err)
	}
	part := processorTime(t, again.PID())
	t.Logf("%s of parameters: %s of processor time and %s for the first engine, %s and %s for the next (%.1f %%)",
		loaded.Image, whole, took.Round(time.Millisecond), part, time.Since(began).Round(time.Millisecond),
		100*part.Seconds()/whole.Seconds())
	if part > whole/20 {
		t.Errorf("the next engine used %s, the first %s", part, whole)
	}
	if read := bytesRead(t, again); read > int64(loaded.Image)/20 {
		t.Errorf("the next engine read %d bytes", read)
	}
}

// realSector is a real sector of 2 KiB.
func realSector(t *testing.T) circuit.Input {
	t.Helper()
	const base = "../../../shared/proof/c1/testdata/2KiB-v1_1"
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

// untilFirstSum has an engine, which pauses there, prove its first segment, and gives the processor time that it took
// up to its first sum.
func untilFirstSum(t *testing.T, e *engine.Engine, hooks string, f *os.File, w engine.Work) time.Duration {
	t.Helper()
	before := processorTime(t, e.PID())
	ended := make(chan error, 1)
	go func() {
		_, err := prove(t.Context(), e, f, w)
		ended <- err
	}()
	const point = "gpu.mid-proof#1"
	for {
		if _, ok := hook.ReachedBy(hooks, point); ok {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the proof came by no sum: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	took := processorTime(t, e.PID()) - before
	if err := hook.LetGo(hooks, point); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return took
}

// A new engine that gets an image is at its first sum with at most a twentieth of the processor time, beyond a proof's
// own, that the first engine took to load. A proof's own is what the first engine took for its first one when all was
// loaded. The parameter file is gone by then, and nothing is decoded.
func TestLongTheFirstProofOfANewEngineLoadsNothing(t *testing.T) {
	input := realSector(t)
	c, folder, hooks := input.Circuit(), t.TempDir(), t.TempDir()
	_, err := generate.ToFolder(t.Context(), folder, c, generate.FromSeed("t", c.ID()), generate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	slice, err := input.Slice(0)
	if err != nil {
		t.Fatal(err)
	}
	witness, err := c.Decode(slice)
	if err != nil {
		t.Fatal(err)
	}
	setup := config(folder, nil)
	setup.StallMax, setup.StageMax = 2*time.Minute, 10*time.Minute
	setup.Setup.HookFolder, setup.Setup.Hooks = hooks, []string{"pause@gpu.mid-proof#1"}
	first := spawn(t, setup)
	loaded, err := first.Load(t.Context(), c.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	fill := func(f *os.File) error { return first.WriteImage(t.Context(), c.ID(), f) }
	image, release, err := residency.NewImages(nil).Hold(t.Context(), c.ID(), loaded.Digest, int64(loaded.Image), fill)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = release() }()
	whole := processorTime(t, first.PID())
	f, w := sealedOf(t, c, witness)
	own := untilFirstSum(t, first, hooks, f, w)
	first.Kill("for the test")
	<-first.Gone()
	if err := os.Remove(residency.ParamsPath(folder, c)); err != nil {
		t.Fatal(err)
	}
	// Processor time has some noise, which only ever adds: one of a few engines shows what it takes.
	var load, took time.Duration
	for range 4 {
		setup.Setup.HookFolder = t.TempDir()
		again := spawn(t, setup)
		loaded, err := again.Load(t.Context(), c.ID(), image)
		if err != nil {
			t.Fatal(err)
		}
		if !loaded.Decoded { // such parameters have no encoded points: asking for one panics
			t.Fatal("the next engine has parameters that are not decoded")
		}
		load = processorTime(t, again.PID())
		f, w = sealedOf(t, c, witness)
		took = untilFirstSum(t, again, setup.Setup.HookFolder, f, w)
		again.Kill("for the test")
		<-again.Gone()
		t.Logf("first engine: %s to load, %s from there to its first sum; next engine: %s to load, %s to its first sum",
			whole, own, load, took)
		if load <= whole/20 && load+took <= own+whole/20 {
			return
		}
	}
	t.Errorf("the next engines took %s to load and %s to the first sum, the first one %s and %s", load, took, whole, own)
}

// bytesRead is what a process has read by system calls.
func bytesRead(t *testing.T, e *engine.Engine) (n int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", e.PID()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(text), "rchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}
