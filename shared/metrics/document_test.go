package metrics_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/metrics"
)

// The list in docs/metrics.md is the one of the programs. REWRITE=1 in the environment writes it.
func TestTheDocumentListsAllMetrics(t *testing.T) {
	t.Parallel()
	const path, mark = "../../docs/metrics.md", "go test ./shared/metrics -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, got, ok := strings.Cut(string(text), mark)
	if !ok {
		t.Fatalf("%s has no list", path)
	}
	var b strings.Builder
	of := ""
	for _, f := range metrics.Families() {
		if f.Of.String() != of {
			of = f.Of.String()
			fmt.Fprintf(&b, "\n### Of: %s\n\n| metric | type | labels | what |\n|---|---|---|---|\n", of)
		}
		help := f.Help
		if f.Sometimes != "" {
			help += " *" + f.Sometimes + "*"
		}
		labels := ""
		if len(f.Labels) > 0 {
			labels = "`" + strings.Join(f.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, labels, help)
	}
	if want := b.String(); got != want {
		if os.Getenv("REWRITE") == "" {
			t.Fatalf("%s is behind: REWRITE=1 go test ./shared/metrics", path)
		}
		if err := os.WriteFile(path, []byte(head+mark+want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
}
