package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// clean is a small repository that breaks no rule.
const clean = `
-- go.work --
-- shared/proof/pure/doc.go --
// Package pure is an example. See [Double].
package pure
-- shared/proof/pure/pure.go --
package pure

// Double doubles.
func Double(n int) int { return n + n }
-- shared/proof/pure/pure_test.go --
package pure

import "testing"

func TestDoubleB02(t *testing.T) {
	if Double(1) != 2 {
		t.Fatal("testdata/case.txt")
	}
}
-- shared/proof/pure/testdata/case.txt --
-- README.md --
See [the package](shared/proof/pure/doc.go) and ` + "`shared/proof/pure`" + `.
-- docs/adr/0001-x.md --
-- tools/tidy/field_reports.txt --
# id issue evidence
current 3
B02 3 TestDoubleB02
B08 3 docs/adr/0001-x.md
B30 4 -
`

// checkArchive lays the archive out in a folder, with files replaced or added by the second one, and checks it.
func checkArchive(t *testing.T, base, change string) []string {
	t.Helper()
	root := t.TempDir()
	for _, archive := range []string{base, change} {
		for _, f := range txtar.Parse([]byte(archive)).Files {
			name := filepath.Join(root, filepath.FromSlash(f.Name))
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	findings, err := check(root)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, f := range findings {
		texts = append(texts, f.String())
	}
	return texts
}

func TestCleanRepositoryHasNoFindings(t *testing.T) {
	t.Parallel()
	if got := checkArchive(t, clean, ""); len(got) != 0 {
		t.Fatalf("findings in a clean repository:\n%s", strings.Join(got, "\n"))
	}
}

// TestEachRuleBites changes the clean repository in one way and wants exactly one finding, that of the rule.
func TestEachRuleBites(t *testing.T) {
	t.Parallel()
	longFunction := "package pure\n\n// Double doubles.\nfunc Double(n int) int {\n" +
		strings.Repeat("\tn++\n", 70) + "\treturn n\n}\n"
	for name, c := range map[string]struct{ change, want string }{
		"clock in a pure package": {
			"-- shared/proof/pure/clock.go --\npackage pure\n\nimport _ \"time\"\n",
			"shared/proof/pure/clock.go:3: shared/proof/pure imports time: this package is pure",
		},
		"files opened outside srs and artifact": {
			"-- shared/proof/pure/open.go --\npackage pure\n\nimport _ \"os\"\n",
			"shared/proof/pure imports os: of proof/* only srs and artifact open files",
		},
		"logger in a pure package": {
			"-- shared/proof/pure/log.go --\npackage pure\n\nimport _ \"log/slog\"\n", "imports log/slog",
		},
		"queue in a pure package": {
			"-- shared/proof/pure/q.go --\npackage pure\n\nimport _ \"github.com/nats-io/nats.go\"\n",
			"imports github.com/nats-io/nats.go",
		},
		"shared imports a binary": {
			"-- shared/proof/pure/up_test.go --\npackage pure\n\nimport _ \"github.com/proofrack/proofrack/cli/x\"\n",
			"shared is the bottom",
		},
		"binaries import each other": {
			"-- worker-gpu/doc.go --\n// Package workergpu is an example.\npackage workergpu\n\n" +
				"import _ \"github.com/proofrack/proofrack/worker-synth\"\n",
			"binaries depend on shared and never on each other",
		},
		"cuda imports ours": {
			"-- cuda/doc.go --\n// Package cuda is an example.\npackage cuda\n\n" +
				"import _ \"github.com/proofrack/proofrack/shared/circuit\"\n",
			"cuda imports gnark-crypto types and nothing of ours",
		},
		"long function": {"-- shared/proof/pure/pure.go --\n" + longFunction, "Double has 73 lines, the limit is 70"},
		"stale exception": {
			"-- tools/tidy/exceptions.txt --\nshared/proof/pure Double 90\n", "Double has only 1 lines by now: lower its entry",
		},
		"exception for nothing": {"-- tools/tidy/exceptions.txt --\nshared/proof/pure Triple 90\n", "no such function"},
		"malformed exception":   {"-- tools/tidy/exceptions.txt --\nDouble 90\n", "want: folder, function, length"},
		"long file": {
			"-- shared/proof/pure/long.go --\npackage pure\n" + strings.Repeat("\n", 800), "801 lines, the limit is 800",
		},
		"long line": {
			"-- shared/proof/pure/wide.go --\npackage pure\n\n//\t" + strings.Repeat("é", 119) + "\n",
			"wide.go:3: 122 columns, the limit is 120",
		},
		"package name": {
			"-- shared/util/doc.go --\n// Package util is a drawer.\npackage util\n", "package name util says nothing",
		},
		"package without doc.go": {"-- shared/bare/bare.go --\npackage bare\n", "package without a described doc.go"},
		"doc.go without text":    {"-- shared/bare/doc.go --\npackage bare\n", "package without a described doc.go"},
		"exported without comment": {
			"-- shared/proof/pure/more.go --\npackage pure\n\nvar Bare = Double(2) + Bare\n", "exported Bare has no comment",
		},
		"init": {"-- shared/proof/pure/i.go --\npackage pure\n\nfunc init() { init() }\n", "init function"},
		"dead doc link": {
			"-- shared/proof/pure/doc.go --\n// Package pure links to [Treble].\npackage pure\n", "link [Treble] leads nowhere",
		},
		"dead doc link into another package": {
			"-- shared/use/doc.go --\n// Package use links to [pure.Double] and [pure.Treble].\npackage use\n\n" +
				"import _ \"github.com/proofrack/proofrack/shared/proof/pure\"\n",
			"link [pure.Treble] leads nowhere",
		},
		"dead link in Markdown": {"-- docs/x.md --\n[a](gone.md)\n", "link to gone.md leads nowhere"},
		"dead path in Markdown": {"-- docs/x.md --\nsee `shared/gone`\n", "no shared/gone in this repository"},
		"dead name": {"-- shared/proof/pure/d.go --\npackage pure\n\nfunc lonely() {}\n",
			"lonely is never mentioned again"},
		"unused test data": {"-- shared/proof/pure/testdata/extra.bin --\n", "no test of its package mentions it"},
		"corpus without target": {"-- shared/proof/pure/testdata/fuzz/FuzzGone/case --\n",
			"no test of its package mentions it"},
		"report without test":   {list("B02 3 -"), "B02 is due and has neither a test nor a decision"},
		"report due earlier":    {list("B02 2"), "B02 is due and has neither a test nor a decision"},
		"report with dead test": {list("B02 3 TestGoneB02"), "B02: no test TestGoneB02"},
		"report with other id":  {list("B05 3 TestDoubleB02"), "B05: the name TestDoubleB02 does not hold the id"},
		"report with dead ADR":  {list("B02 4 docs/adr/9999.md"), "B02: no docs/adr/9999.md"},
		"report listed twice":   {list("B02 3 TestDoubleB02\nB02 3 TestDoubleB02"), "is no id, or listed twice"},
		"malformed report":      {list("B02 soon\nB05 4 -"), "want: id, issue number"},
		"empty list":            {list(""), "the list is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := checkArchive(t, clean, c.change)
			if len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Fatalf("got:\n%s\nwant one finding with %q", strings.Join(got, "\n"), c.want)
			}
		})
	}
}

// list is a list of field reports in place of the clean one.
func list(rows string) string { return "-- tools/tidy/field_reports.txt --\ncurrent 3\n" + rows + "\n" }

func TestMissingListOfReportsIsFound(t *testing.T) {
	t.Parallel()
	base, _, _ := strings.Cut(clean, "-- tools/tidy/field_reports.txt --")
	got := checkArchive(t, base, "")
	if len(got) != 1 || !strings.Contains(got[0], "the list is missing") {
		t.Fatalf("got %q", got)
	}
}

func TestRulesLeaveAloneWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"srs opens files": "-- shared/proof/srs/doc.go --\n// Package srs is an example.\npackage srs\n\nimport _ \"os\"\n",
		"tests use a clock": "-- shared/proof/pure/clock_test.go --\npackage pure\n\n" +
			"import _ \"time\"\n",
		"script counts as test": "-- shared/proof/pure/scripts_test.go --\npackage pure\n\nimport \"testing\"\n\n" +
			"func TestScripts(t *testing.T) { t.Log(\"testdata/script\") }\n" +
			"-- shared/proof/pure/testdata/script/b05_verify.txtar --\n" + list("B05 3 TestScripts/b05_verify"),
		"exception of the right length": "-- tools/tidy/exceptions.txt --\nshared/proof/pure Double 1\n",
		"links to the web":              "-- docs/x.md --\n[a](https://example.org/x)\n",
		"corpus with target": "-- shared/proof/pure/f_test.go --\npackage pure\n\nimport \"testing\"\n\n" +
			"func FuzzX(f *testing.F) { f.Add(1) }\n-- shared/proof/pure/testdata/fuzz/FuzzX/1 --\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := checkArchive(t, clean, change); len(got) != 0 {
				t.Fatalf("findings:\n%s", strings.Join(got, "\n"))
			}
		})
	}
}
