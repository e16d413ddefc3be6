package artifact_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/artifact"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/toy"
)

func build(t *testing.T) (circuit.Circuit, *artifact.Artifact) {
	t.Helper()
	c := toy.Circuit()
	a, err := artifact.Build(context.Background(), c, 2)
	if err != nil {
		t.Fatal(err)
	}
	return c, a
}

func TestBuildRecordsTheDensityOfEveryRow(t *testing.T) {
	t.Parallel()
	c, a := build(t)
	want := r1cs.NewDensity(circuit.Totals(c))
	circuit.Describe(c, want)
	if diff := cmp.Diff(want, a.Density); diff != "" {
		t.Errorf("density differs (-want +got):\n%s", diff)
	}
}

func TestLoadBuildsOnceAndReadsAfterwards(t *testing.T) {
	t.Parallel()
	c, want := build(t)
	folder := t.TempDir()
	for _, wantBuilt := range []bool{true, false} {
		got, built, err := artifact.Load(context.Background(), folder, c, 1)
		if err != nil {
			t.Fatal(err)
		}
		if built != wantBuilt {
			t.Errorf("built: got %t, want %t", built, wantBuilt)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("artifact differs (-want +got):\n%s", diff)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != artifact.FileName(c.ID()) {
		t.Errorf("folder holds %v, want the artifact alone", entries)
	}
}

func TestAnyFlippedByteIsFoundAndRepaired(t *testing.T) {
	t.Parallel()
	c, a := build(t)
	path := filepath.Join(t.TempDir(), artifact.FileName(c.ID()))
	if err := a.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(good); i += 7 {
		bad := append([]byte(nil), good...)
		bad[i] ^= 0x10
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := artifact.ReadFile(path, c); !errors.Is(err, artifact.ErrCorrupt) {
			t.Fatalf("byte %d flipped: got %v, want ErrCorrupt", i, err)
		}
	}
	if err := os.WriteFile(path, good[:len(good)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := artifact.ReadFile(path, c); !errors.Is(err, artifact.ErrCorrupt) {
		t.Fatalf("truncated: got %v, want ErrCorrupt", err)
	}
	if _, built, err := artifact.Load(context.Background(), filepath.Dir(path), c, 1); err != nil || !built {
		t.Fatalf("load over a corrupt file: built %t, %v", built, err)
	}
	if _, err := artifact.ReadFile(path, c); err != nil {
		t.Fatalf("read after repair: %v", err)
	}
}

func TestCancelledBuildEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := artifact.Build(ctx, toy.Circuit(), 1); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
}
