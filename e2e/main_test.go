package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/proof/srs/generate"
	"github.com/proofrack/proofrack/shared/proof/toy"
)

// built is what all tests share: the programs, and the parameters of the toy circuit.
var built struct { //nolint:gochecknoglobals // filled by TestMain
	coordinator, synth, gpu, nats string
	params                        string
}

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	folder, err := os.MkdirTemp("", "proofrack-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	if err := build(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func build(folder string) error {
	const module = "github.com/proofrack/proofrack/"
	for _, p := range []struct {
		path *string
		pkg  string
	}{
		{&built.coordinator, "coordinator/cmd/coordinator"}, {&built.synth, "worker-synth/cmd/worker-synth"},
		{&built.gpu, "worker-gpu/cmd/worker-gpu"}, {&built.nats, "e2e/cmd/nats"},
	} {
		*p.path = filepath.Join(folder, filepath.Base(p.pkg))
		if out, err := exec.Command("go", "build", "-tags", "toy", "-o", *p.path, module+p.pkg).CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", p.pkg, err, out)
		}
	}
	built.params = filepath.Join(folder, "params")
	if err := os.Mkdir(built.params, 0o700); err != nil {
		return fmt.Errorf("make parameters: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := toy.Circuit()
	_, err := generate.ToFolder(ctx, built.params, c, generate.FromSeed("e2e", c.ID()), generate.Options{})
	if err != nil {
		return fmt.Errorf("make parameters: %w", err)
	}
	return nil
}
