package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
)

// finding is one breach of one rule.
type finding struct {
	rule string
	file string // slash-separated, relative to the root
	line int    // from 1; 0 means the file as a whole
	text string
}

// String gives the form that editors understand.
func (f finding) String() string {
	if f.line == 0 {
		return fmt.Sprintf("%s: %s (%s)", f.file, f.text, f.rule)
	}
	return fmt.Sprintf("%s:%d: %s (%s)", f.file, f.line, f.text, f.rule)
}

// rule looks at the whole repository and gives every breach.
type rule func(*repository) []finding

// allRules are the rules in the order of doc.go.
func allRules() []rule {
	return []rule{
		checkImports, checkFunctionLengths, checkFileLengths, checkLineLengths, checkPackageNames, checkPackageDocs,
		checkExportedDocs, checkNoInit, checkDocLinks, checkMarkdownPaths, checkDeadNames, checkTestdata,
		checkFieldReports, checkClock,
	}
}

var errNoRoot = errors.New("no go.work in any parent folder")

// findRoot walks up from the working directory to the folder that holds go.work.
func findRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("get working directory: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.work")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errNoRoot
		}
		folder = parent
	}
}

// check loads the repository under root and applies all rules.
func check(root string) ([]finding, error) {
	repo, err := load(root)
	if err != nil {
		return nil, err
	}
	var all []finding
	for _, apply := range allRules() {
		all = append(all, apply(repo)...)
	}
	sort.Slice(all, func(i, j int) bool {
		if all[i].file != all[j].file {
			return all[i].file < all[j].file
		}
		if all[i].line != all[j].line {
			return all[i].line < all[j].line
		}
		return all[i].text < all[j].text
	})
	return all, nil
}

func main() {
	root := flag.String("root", "", "checkout to look at (default: the parent folder that holds go.work)")
	flag.Parse()
	if *root == "" {
		found, err := findRoot()
		if err != nil {
			fmt.Fprintln(os.Stderr, "tidy: find checkout:", err)
			os.Exit(2)
		}
		*root = found
	}
	findings, err := check(*root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tidy:", err)
		os.Exit(2)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}
