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

// programs are the binaries of one build.
type programs struct{ coordinator, synth, gpu string }

// built is what all tests share: the programs, and the parameters of the toy circuit.
var built struct { //nolint:gochecknoglobals // filled by TestMain
	programs

	folder, nats, params string
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
	built.folder, built.nats = folder, filepath.Join(folder, "nats")
	var err error
	if built.programs, err = buildPrograms(folder, "toy"); err != nil {
		return err
	}
	if err := buildProgram(built.nats, "e2e/cmd/nats", "toy"); err != nil {
		return err
	}
	built.params = filepath.Join(folder, "params")
	if err := os.Mkdir(built.params, 0o700); err != nil {
		return fmt.Errorf("make parameters: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := toy.Circuit()
	_, err = generate.ToFolder(ctx, built.params, c, generate.FromSeed("e2e", c.ID()), generate.Options{})
	if err != nil {
		return fmt.Errorf("make parameters: %w", err)
	}
	return nil
}

// buildPrograms builds the rack's programs with some build tags.
func buildPrograms(folder, tags string) (programs, error) {
	p := programs{
		coordinator: filepath.Join(folder, "coordinator"), synth: filepath.Join(folder, "worker-synth"),
		gpu: filepath.Join(folder, "worker-gpu"),
	}
	for pkg, path := range map[string]string{
		"coordinator/cmd/coordinator": p.coordinator, "worker-synth/cmd/worker-synth": p.synth,
		"worker-gpu/cmd/worker-gpu": p.gpu,
	} {
		if err := buildProgram(path, pkg, tags); err != nil {
			return programs{}, err
		}
	}
	return p, nil
}

func buildProgram(path, pkg, tags string) error {
	const module = "github.com/proofrack/proofrack/"
	if out, err := exec.Command("go", "build", "-tags", tags, "-o", path, module+pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}
