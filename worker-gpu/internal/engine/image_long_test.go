//go:build toy && long

package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/proof/catalog"
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
