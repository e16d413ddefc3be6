//go:build toy

package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
	"github.com/proofrack/proofrack/worker-gpu/internal/residency"
)

// imageOf has an engine decode the toy's parameters.
func imageOf(t *testing.T, e *engine.Engine) *os.File {
	t.Helper()
	loaded, err := e.Load(t.Context(), "toy", nil)
	if err != nil {
		t.Fatal(err)
	}
	fill := func(f *os.File) error { return e.WriteImage(t.Context(), "toy", f) }
	image, release, err := residency.NewImages(nil).Hold(t.Context(), "toy", "digest", int64(loaded.Image), fill)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = release() })
	return image
}

// A new engine proves with what an old one decoded, although there is no parameter file any more.
func TestANewEngineUsesWhatAnOldOneDecoded(t *testing.T) {
	t.Parallel()
	folder := params(t)
	old := spawn(t, config(folder, nil))
	image := imageOf(t, old)
	old.Kill("for the test")
	<-old.Gone()
	files, err := filepath.Glob(filepath.Join(folder, "*.params"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	e := spawn(t, config(folder, nil))
	if _, err := e.Load(t.Context(), "toy", nil); fault.KindOf(err) != fault.NotFound {
		t.Fatalf("load from the file: %v", err)
	}
	loaded, err := e.Load(t.Context(), "toy", image)
	if err != nil {
		t.Fatal(err)
	}
	if !loaded.Decoded || loaded.Digest == "" || !loaded.Development {
		t.Errorf("loaded %+v", loaded)
	}
	for seed := range uint64(2) {
		f, w := sealed(t, seed+1)
		got, err := prove(t.Context(), e, f, w)
		if err != nil {
			t.Fatal(err)
		}
		verify(t, loaded.Key, seed+1, got.Proof)
	}
	if err := e.Evict(t.Context(), "toy"); err != nil {
		t.Error(err)
	}
}

func TestAnEngineTakesNoImageThatIsNone(t *testing.T) {
	t.Parallel()
	e := spawn(t, config(params(t), nil))
	image := imageOf(t, e)
	bad, err := os.Create(filepath.Join(t.TempDir(), "bad"))
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	if _, err := e.Load(t.Context(), "toy", bad); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("an empty image: %v", err)
	}
	if err := e.WriteImage(t.Context(), "toy", image); err == nil {
		t.Error("a sealed image was written to")
	}
	if _, err := e.Load(t.Context(), "toy", image); err != nil {
		t.Error(err)
	}
}
