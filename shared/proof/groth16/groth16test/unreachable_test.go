package groth16test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// listed is what the go command says about a package.
type listed struct {
	ImportPath string
	Name       string
	Imports    []string
	Deps       []string
}

// packages lists every package of the workspace, without its tests.
func packages(t *testing.T) []listed {
	t.Helper()
	modules, err := exec.CommandContext(t.Context(), "go", "list", "-m").Output()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"list", "-json=ImportPath,Name,Imports,Deps"}
	for _, m := range strings.Fields(string(modules)) {
		args = append(args, m+"/...")
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

const self = "github.com/proofrack/proofrack/shared/proof/groth16/groth16test"

// Fixed scalars give the witness away, so no program may contain this package: whatever is not a test or a test package
// does not import it.
func TestProductionCannotReachFixedBlinding(t *testing.T) {
	t.Parallel()
	programs, found := 0, false
	for _, p := range packages(t) {
		found = found || p.ImportPath == self
		if slices.Contains(p.Imports, self) && !strings.HasSuffix(path.Base(p.ImportPath), "test") {
			t.Errorf("%s imports %s outside of tests", p.ImportPath, self)
		}
		if p.Name == "main" {
			programs++
			if slices.Contains(p.Deps, self) {
				t.Errorf("program %s contains %s", p.ImportPath, self)
			}
		}
	}
	if !found || programs == 0 {
		t.Errorf("the list is not the workspace: %d programs", programs)
	}
}
