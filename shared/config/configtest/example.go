package configtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/config"
)

// RewriteVariable is the environment variable that makes Example write the file instead of comparing it.
const RewriteVariable = "REWRITE"

// Example fails the test unless every key of the Config struct has a doc tag, the file at path is its example, and the
// example, also with all its defaults uncommented, loads to what defaults makes. Defaults that do not validate, such as
// a name that has to be given, are completed by the assignments in set. With REWRITE=1 in the environment the file is
// written first.
func Example[T any](t testing.TB, path, title string, defaults func() T, set ...string) {
	t.Helper()
	fresh := func() *T { c := defaults(); return &c }
	if bare := config.Undocumented(fresh()); len(bare) > 0 {
		t.Errorf("keys without a doc tag: %s", strings.Join(bare, ", "))
	}
	want := config.Example(title, fresh())
	if os.Getenv(RewriteVariable) != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // an example is for all to read
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (%s=1 writes it)", err, RewriteVariable)
	}
	if diff := cmp.Diff(want, string(committed)); diff != "" {
		t.Errorf("%s is not up to date (%s=1 rewrites it):\n%s", path, RewriteVariable, diff)
	}
	loaded, err := config.Load(fresh(), config.Sources{Set: set})
	if err != nil {
		t.Fatalf("defaults: %v", err)
	}
	expected := values(loaded)
	for name, text := range map[string]string{"example": want, "uncommented": config.Uncommented(want)} {
		file := filepath.Join(t.TempDir(), name+".toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := config.Load(fresh(), config.Sources{File: file, Set: set})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(expected, values(got)); diff != "" {
			t.Errorf("%s does not load back to the defaults:\n%s", name, diff)
		}
		for _, row := range got.Rows() {
			if name == "uncommented" && row.Source == "default" {
				t.Errorf("%s: key %s is not in it", name, row.Key)
			}
		}
	}
}

func values(table *config.Table) map[string]string {
	all := map[string]string{}
	for _, row := range table.Rows() {
		all[row.Key] = row.Value
	}
	return all
}
