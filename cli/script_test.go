package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	workergpu "github.com/proofrack/proofrack/worker-gpu"
)

// TestMain lets the test program stand in for proofrack in scripts.
func TestMain(m *testing.M) {
	// A rack started by a script starts its engines as this program, under no other name.
	if len(os.Args) == 2 && os.Args[1] == workergpu.EngineArgument {
		os.Exit(run())
	}
	testscript.Main(m, map[string]func(){
		"proofrack":   func() { os.Exit(run()) },
		"natsserver":  func() { os.Exit(runNATS(os.Args[1:])) },
		"coordinator": func() { os.Exit(runCoordinator(os.Args[1:])) },
	})
}

// TestScripts runs testdata/script/*.txtar.
func TestScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, "testdata/script")
}

// runScripts runs the scripts of a folder. Beside the usual commands there are those of scriptCommands; the condition
// [namespaces] holds where this user may mount file systems in a namespace of its own, and [fixtures] where the folder
// shared/fixtures lies beside the checkout, whose path is then in $FIXTURES. $CHECKOUT is the checkout, $SCRATCH what
// PROOFRACK_SCRATCH names, or the script's own folder.
func runScripts(t *testing.T, folder string) {
	t.Helper()
	checkout := findCheckout(t)
	fixtures := filepath.Join(filepath.Dir(checkout), "shared", "fixtures")
	testscript.Run(t, testscript.Params{
		Dir: folder,
		Setup: func(e *testscript.Env) error {
			e.Setenv("FIXTURES", fixtures)
			e.Setenv("CHECKOUT", checkout)
			e.Setenv("SCRATCH", cmp.Or(os.Getenv("PROOFRACK_SCRATCH"), e.WorkDir))
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "fixtures":
				_, err := os.Stat(fixtures)
				return err == nil, nil
			case "namespaces":
				return exec.Command("unshare", "-rm", "true").Run() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds:                scriptCommands(),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// findCheckout gives the folder that holds go.work.
func findCheckout(t *testing.T) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.work")); err == nil {
			return folder
		}
		if folder == filepath.Dir(folder) {
			t.Fatal("no go.work in any parent folder")
		}
		folder = filepath.Dir(folder)
	}
}
