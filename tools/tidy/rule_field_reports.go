package main

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// fieldReportsPath is the list of field reports.
const fieldReportsPath = "tools/tidy/field_reports.txt"

var reportID = regexp.MustCompile(`^B[0-9]{2,3}$`)

// checkFieldReports reads the list of field reports and wants, for each row that is due, a test whose name holds the
// row's id, or an existing decision record.
//
// The list starts with "current N", the issue being worked on; every row up to it is due. A row is
// "id issue evidence…": each evidence is a Go test (Test…, which may name a subtest script by Test…/file), or a file
// of docs/adr. A row that is not due may have "-" in place of evidence. Scripts count by their file name, so a test
// written as testdata/script/b05_verify.txtar satisfies "TestScripts/b05_verify".
func checkFieldReports(repo *repository) []finding {
	content, err := os.ReadFile(filepath.Join(repo.root, fieldReportsPath))
	if err != nil {
		return []finding{{"field reports", fieldReportsPath, 0, "the list is missing"}}
	}
	tests := testNames(repo)
	var found []finding
	report := func(line int, format string, args ...any) {
		found = append(found, finding{"field reports", fieldReportsPath, line, fmt.Sprintf(format, args...)})
	}
	current, seen := -1, map[string]bool{}
	scanner := bufio.NewScanner(bytes.NewReader(content))
	for n := 1; scanner.Scan(); n++ {
		fields := strings.Fields(scanner.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		issue := -1
		if len(fields) > 1 {
			if parsed, err := strconv.Atoi(fields[1]); err == nil {
				issue = parsed
			}
		}
		switch {
		case issue < 0:
			report(n, "want: id, issue number, tests or decisions")
		case fields[0] == "current":
			current = issue
		case !reportID.MatchString(fields[0]) || seen[fields[0]]:
			report(n, "%q is no id, or listed twice", fields[0])
		case current < 0:
			report(n, "a row before the line that names the current issue")
		default:
			seen[fields[0]] = true
			for _, problem := range rowProblems(repo, tests, fields[0], issue <= current, fields[2:]) {
				report(n, "%s", problem)
			}
		}
	}
	if len(seen) == 0 {
		report(0, "the list is empty")
	}
	return found
}

// rowProblems says what is missing in one row.
func rowProblems(repo *repository, tests map[string]bool, id string, due bool, evidence []string) []string {
	var problems []string
	settled := false
	for _, e := range evidence {
		switch {
		case e == "-":
		case strings.HasPrefix(e, "docs/adr/"):
			if !repo.exists(e) {
				problems = append(problems, id+": no "+e)
				continue
			}
			settled = true
		case !strings.Contains(strings.ToUpper(e), id):
			problems = append(problems, id+": the name "+e+" does not hold the id")
		case !tests[e]:
			problems = append(problems, id+": no test "+e)
		default:
			settled = true
		}
	}
	if due && !settled && len(problems) == 0 {
		problems = append(problems, id+" is due and has neither a test nor a decision")
	}
	return problems
}

// suiteTest is what tests of a conformance suite are called that carry the id of a field report.
var suiteTest = regexp.MustCompile(`^B[0-9]+[A-Z][A-Za-z0-9]+$`)

// testNames gives every test function, Test…/script for each script beside a package whose tests mention testdata, and
// TestConformance/name for each test of a conformance suite (packages called …test) that carries an id.
func testNames(repo *repository) map[string]bool {
	names := map[string]bool{}
	for _, f := range repo.folders {
		var runners []string
		for _, file := range f.files {
			if !file.test {
				continue
			}
			for _, d := range file.syntax.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
					names[fn.Name.Name] = true
					runners = append(runners, fn.Name.Name)
				}
			}
		}
		if strings.HasSuffix(f.path, "test") {
			addSuiteTests(f.files, names)
		}
		for _, data := range repo.testdata {
			rest, ok := strings.CutPrefix(data, f.path+"/testdata/")
			extension := filepath.Ext(rest)
			if !ok || extension != ".txtar" && extension != ".txt" {
				continue
			}
			script := strings.TrimSuffix(filepath.Base(rest), extension)
			for _, runner := range runners {
				names[runner+"/"+script] = true
			}
		}
	}
	return names
}

// addSuiteTests adds the tests of a conformance suite that carry an id.
func addSuiteTests(files []*sourceFile, names map[string]bool) {
	for _, file := range files {
		ast.Inspect(file.syntax, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if name := strings.Trim(lit.Value, `"`); suiteTest.MatchString(name) {
					names["TestConformance/"+name] = true
				}
			}
			return true
		})
	}
}
