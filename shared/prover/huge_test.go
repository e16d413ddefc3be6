//go:build huge

package prover_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/artifact"
	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/seal"
	"github.com/proofrack/proofrack/shared/proof/sparse"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
	"github.com/proofrack/proofrack/shared/prover"
)

// The steps run in processes of their own, so that each has its own peak.
const (
	hugeStepVariable = "PROOFRACK_HUGE_STEP"
	hugeScratch      = "PROOFRACK_SCRATCH" // folder with 60 GB of room
	hugeParamsBytes  = 47_373_928_632      // spec c2-circuit.md 6.2
	gibibyte         = 1 << 30
)

// TestHugePartition proves one full 32 GiB partition: parameters from a seed, a sparse sector, synthesis, proof,
// verification. Parameters that an earlier run left in the scratch folder are used again.
func TestHugePartition(t *testing.T) {
	scratch := os.Getenv(hugeScratch)
	if scratch == "" {
		t.Fatalf("set %s to a folder with 60 GB of room", hugeScratch)
	}
	switch os.Getenv(hugeStepVariable) {
	case "generate":
		hugeGenerate(t, scratch)
		return
	case "prove":
		hugeProve(t, scratch)
		return
	}
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(scratch, porep.ForSize(sdr.Size32GiB).ParamsName()+srs.ParamsExtension)
	if _, err := os.Stat(path); err != nil {
		runHugeStep(t, "generate", 18*gibibyte)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() != hugeParamsBytes {
		t.Fatalf("parameter file has %d bytes, want %d", info.Size(), int64(hugeParamsBytes))
	}
	runHugeStep(t, "prove", 16*gibibyte)
}

// runHugeStep runs one step and holds its peak RSS, mapped file pages included, against a limit.
func runHugeStep(t *testing.T, step string, peakMax int64) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestHugePartition$", "-test.v", "-test.timeout", "0")
	cmd.Env = append(os.Environ(), hugeStepVariable+"="+step)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	start := time.Now()
	err := cmd.Run()
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	peak := usage.Maxrss << 10
	t.Logf("step %s: %.0f s wall, %.0f s user, %.0f s system, peak RSS %.2f GiB", step, time.Since(start).Seconds(),
		float64(usage.Utime.Nano())/1e9, float64(usage.Stime.Nano())/1e9, float64(peak)/gibibyte)
	if err != nil {
		t.Fatalf("step %s: %v", step, err)
	}
	if peak > peakMax {
		t.Errorf("step %s: peak RSS %d bytes, limit %d", step, peak, peakMax)
	}
}

func hugeGenerate(t *testing.T, scratch string) {
	c := porep.ForSize(sdr.Size32GiB)
	begun := map[generate.Stage]time.Time{}
	files, err := generate.ToFolder(t.Context(), scratch, c, generate.FromSeed("huge", c.ID()), generate.Options{
		SectorSize: uint64(sdr.Size32GiB),
		Progress: func(stage generate.Stage, done, total int64) {
			if _, ok := begun[stage]; !ok {
				begun[stage] = time.Now()
			}
			if done == total {
				t.Logf("stage %s: %d in %.0f s", stage, total, time.Since(begun[stage]).Seconds())
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := srs.Counts{IC: 328, H: 134_217_727, L: 130_169_893, A: 129_753_620, B: 33_112_282}
	if files.Counts != want {
		t.Errorf("counts: got %v, want %v", files.Counts, want)
	}
	t.Logf("digest %s", files.Digest)
}

// hugeInput is a sparse 32 GiB sector as its prover gets it.
func hugeInput(t *testing.T) circuit.Input {
	t.Helper()
	proof, err := sdr.FindRegisteredProof(sdr.Size32GiB, sdr.APIVersion1_1, sdr.Interactive)
	if err != nil {
		t.Fatal(err)
	}
	request := seal.NewRequest(proof.Config(), 1000, 4243, "huge")
	out, err := sparse.Make(t.Context(), &request)
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer write.Close()
		_ = c1.WriteJSON(write, out) // a failure cuts the text short, and the reader refuses it
	}()
	number := uint64(4243)
	input, err := porep.Kind{}.Open(t.Context(), read, circuit.Claim{ProverID: sdr.ProverID(1000), SectorNumber: &number})
	if err != nil {
		t.Fatal(err)
	}
	return input
}

func hugeProve(t *testing.T, scratch string) {
	timed := func(what string, do func()) {
		start := time.Now()
		do()
		t.Logf("%s: %.1f s", what, time.Since(start).Seconds())
	}
	input := hugeInput(t)
	c := input.Circuit()
	var params prover.Params
	timed("artifact", func() { params.Artifact = hugeArtifact(t, scratch, c) })
	timed("open parameters", func() {
		path := filepath.Join(scratch, c.ParamsName()+srs.ParamsExtension)
		opened, err := srs.Open(t.Context(), path, srs.CountsOf(params.Artifact.Totals, params.Artifact.Density),
			srs.Options{DigestCache: filepath.Join(scratch, "digests.json")})
		if err != nil {
			t.Fatal(err)
		}
		params.SRS = opened
	})
	defer params.SRS.Close()
	var segment *compact.Segment
	timed("synthesis", func() { segment = hugeSegment(t, input) })
	device := prover.NewCPU(prover.CPUConfig{})
	defer device.Close()
	var proof *groth16.Proof
	timed("proof", func() {
		pending, err := device.Start(t.Context(), prover.Source{Segment: segment}, params)
		if err != nil {
			t.Fatal(err)
		}
		if proof, err = pending.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		timings, err := json.Marshal(pending.Timings())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("timings in ns: %s", timings)
	})
	inputs, err := input.PublicInputs(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := groth16.Verify(params.SRS.Key, inputs, proof); err != nil {
		t.Fatal(err)
	}
	t.Logf("verified: %x", proof.Bytes())
}

func hugeArtifact(t *testing.T, scratch string, c circuit.Circuit) *artifact.Artifact {
	t.Helper()
	known, built, err := artifact.Load(t.Context(), scratch, c, runtime.GOMAXPROCS(0))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(scratch, artifact.FileName(c.ID())))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("artifact of %d bytes, built now: %t", info.Size(), built)
	if info.Size() > 100_000_000 {
		t.Errorf("artifact of %d bytes, limit 100 MB", info.Size())
	}
	return known
}

func hugeSegment(t *testing.T, input circuit.Input) *compact.Segment {
	t.Helper()
	slice, err := input.Slice(0)
	if err != nil {
		t.Fatal(err)
	}
	witness, err := input.Circuit().Decode(slice)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := compact.LayoutOf(input.Circuit())
	if err != nil {
		t.Fatal(err)
	}
	job := compact.Job{Circuit: input.Circuit(), Witness: witness, Workers: runtime.GOMAXPROCS(0)}
	segment, err := job.Synthesize(context.Background(), layout.Memory())
	if err != nil {
		t.Fatal(err)
	}
	return segment
}
