package main

import (
	"fmt"
	"strconv"
	"strings"
)

// importRule forbids imports to a part of the tree.
type importRule struct {
	// within is a folder; the rule holds for it and everything below.
	within string
	// except are folders below within that the rule leaves alone.
	except []string
	// forbid are import paths or prefixes ending in "/"; those of ours are written without the module prefix and a
	// leading "@", as in "@cli".
	forbid []string
	// allow are exceptions to forbid, in the same form.
	allow []string
	// testsToo makes the rule hold for test files as well.
	testsToo bool
	reason   string
}

// pure is what a package that holds facts and arithmetic never touches.
func pure() []string {
	return []string{
		"time", "log", "log/", "net", "net/", "github.com/rs/zerolog/", "github.com/rs/zerolog",
		"github.com/nats-io/", "github.com/redis/", "github.com/alicebob/", "go.opentelemetry.io/", "github.com/spf13/",
	}
}

// timeless is pure for packages that hold times and never ask for one; rule clock looks at their calls.
func timeless() []string { return pure()[1:] }

// importRules is the table of house style 4.1.
func importRules() []importRule {
	const direction = "binaries depend on shared and never on each other"
	const clockless = "this package is pure: no clock, log, network or store"
	return []importRule{
		{within: "shared", testsToo: true,
			forbid: []string{"@cli", "@coordinator", "@worker-synth", "@worker-gpu", "@cuda", "@deploy", "@e2e", "@tools"},
			reason: "shared is the bottom: it imports no other module of ours"},
		{within: "coordinator",
			forbid:   []string{"@cli", "@worker-synth", "@worker-gpu", "@cuda", "@deploy", "@e2e", "@tools"},
			testsToo: true, reason: direction},
		{within: "worker-synth",
			forbid:   []string{"@cli", "@coordinator", "@worker-gpu", "@cuda", "@deploy", "@e2e", "@tools"},
			testsToo: true, reason: direction},
		{within: "worker-gpu", forbid: []string{"@cli", "@coordinator", "@worker-synth", "@deploy", "@e2e", "@tools"},
			testsToo: true, reason: direction},
		{within: "cuda", forbid: []string{"@"}, allow: []string{"@cuda"}, testsToo: true,
			reason: "cuda imports gnark-crypto types and nothing of ours"},
		{within: "cli", forbid: []string{"@cuda", "@deploy", "@e2e", "@tools"}, testsToo: true, reason: direction},
		{within: "tools",
			forbid:   []string{"@cli", "@coordinator", "@worker-synth", "@worker-gpu", "@cuda", "@deploy", "@e2e"},
			testsToo: true, reason: "tools stand beside the product"},
		{within: "deploy", forbid: []string{"@cli", "@cuda", "@e2e", "@tools"}, testsToo: true,
			reason: "deploy runs the programs and holds its files against their settings"},
		{within: "shared/proof", forbid: pure(), reason: clockless},
		{within: "shared/job", forbid: timeless(), reason: clockless},
		{within: "shared/bytesize", forbid: pure(), reason: clockless},
		{within: "shared/circuit", forbid: pure(), reason: clockless},
		{within: "shared/fault", forbid: pure(), reason: clockless},
		{within: "shared/wire", forbid: timeless(), reason: clockless},
		{within: "shared/ledger", except: []string{"shared/ledger/redisledger"}, forbid: timeless(), reason: clockless},
		{within: "shared/proof", except: []string{"shared/proof/srs", "shared/proof/artifact"},
			forbid: []string{"os", "os/", "io/ioutil", "syscall"}, // x/sys/unix is for memory mappings, as package msm has
			reason: "of proof/* only srs and artifact open files"},
		{within: "shared/proof", forbid: []string{
			"@shared/bus", "@shared/ledger", "@shared/handoff", "@shared/attempt", "@shared/agent", "@shared/flight",
			"@shared/client", "@shared/job", "@shared/wire", "@shared/inventory", "@shared/service", "@shared/telemetry"},
			reason: "proof/* and the cluster packages do not know each other"},
	}
}

// inside says whether a folder is of, or below, a part of the tree.
func inside(folder, part string) bool { return folder == part || strings.HasPrefix(folder, part+"/") }

// matches says whether an import path is named by a pattern of an importRule.
func matches(imported, pattern string) bool {
	if ours, ok := strings.CutPrefix(pattern, "@"); ok {
		rest, isOurs := strings.CutPrefix(imported, modulePrefix)
		return isOurs && (ours == "" || inside(rest, ours))
	}
	if strings.HasSuffix(pattern, "/") {
		return strings.HasPrefix(imported, pattern)
	}
	return imported == pattern
}

// matchesAny is matches over several patterns.
func matchesAny(imported string, patterns []string) bool {
	for _, p := range patterns {
		if matches(imported, p) {
			return true
		}
	}
	return false
}

// applies says whether the rule speaks about a file. Generators are programs of their own and may do anything.
func (r importRule) applies(at *folder, file *sourceFile) bool {
	if !inside(at.path, r.within) || (file.test && !r.testsToo) || strings.Contains(at.path, "internal/asmgen") {
		return false
	}
	for _, e := range r.except {
		if inside(at.path, e) {
			return false
		}
	}
	return true
}

// checkImports applies the import table.
func checkImports(repo *repository) []finding {
	var found []finding
	rules := importRules()
	repo.eachFile(func(at *folder, file *sourceFile) {
		for _, spec := range file.syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue
			}
			for _, r := range rules {
				if r.applies(at, file) && matchesAny(imported, r.forbid) && !matchesAny(imported, r.allow) {
					found = append(found, finding{"imports", file.path, repo.line(spec.Pos()),
						fmt.Sprintf("%s imports %s: %s", at.path, imported, r.reason)})
				}
			}
		}
	})
	return found
}
