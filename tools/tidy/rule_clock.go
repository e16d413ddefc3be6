package main

import (
	"go/ast"
	"slices"
)

// clockCalls are what asks for the time or waits for it.
func clockCalls() []string {
	return []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}
}

// checkClock keeps packages that hold times from asking for one: their callers say what time it is.
func checkClock(repo *repository) []finding {
	var found []finding
	for _, f := range repo.folders {
		if !slices.Contains(
			[]string{"shared/job", "shared/wire", "shared/ledger", "coordinator/internal/scheduler"},
			f.path,
		) {
			continue
		}
		for _, file := range f.production() {
			ast.Inspect(file.syntax, func(n ast.Node) bool {
				call, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if pkg, ok := call.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(clockCalls(), call.Sel.Name) {
					found = append(found, finding{"clock", file.path, repo.line(call.Pos()),
						"time." + call.Sel.Name + ": this package is told the time"})
				}
				return true
			})
		}
	}
	return found
}
