package main

import (
	"go/ast"
	"go/token"
	"path"
	"strconv"
	"strings"
)

// calledByName are methods that the language or a library calls through an interface, so that no mention of ours is
// needed.
func calledByName() map[string]bool {
	names := map[string]bool{"main": true, "_": true}
	for _, n := range strings.Fields(`String Error Is As Unwrap Len Less Swap Push Pop Read Write Close Seek ReadAt WriteTo
		ReadFrom ReadByte MarshalJSON UnmarshalJSON MarshalText UnmarshalText MarshalBinary UnmarshalBinary Format GoString
		Set Type OnStart OnEnd ForceFlush NewIDs`) {
		names[n] = true
	}
	return names
}

// checkDeadNames finds top-level declarations and methods that are mentioned nowhere but where they are declared. It
// counts names, not meanings, so it can miss a dead one; what it finds is dead.
func checkDeadNames(repo *repository) []finding {
	mentions := map[string]int{}
	repo.eachFile(func(_ *folder, file *sourceFile) {
		ast.Inspect(file.syntax, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				mentions[id.Name]++
			}
			return true
		})
	})
	called := calledByName()
	var found []finding
	repo.eachFile(func(at *folder, file *sourceFile) {
		if file.generated {
			return
		}
		for _, name := range declaredNames(file.syntax) {
			runner := file.test && isTestName(name.Name)
			if mentions[name.Name] > 1 || called[name.Name] || runner || hasAssembly(at, name) {
				continue
			}
			found = append(found, finding{"dead names", file.path, repo.line(name.Pos()),
				name.Name + " is never mentioned again"})
		}
	})
	return found
}

// hasAssembly leaves functions without a Go body to the assembler.
func hasAssembly(at *folder, name *ast.Ident) bool {
	for _, file := range at.files {
		for _, d := range file.syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name == name {
				return f.Body == nil
			}
		}
	}
	return false
}

// isTestName says whether the test runner calls a function of that name.
func isTestName(name string) bool {
	for _, prefix := range []string{"Test", "Benchmark", "Fuzz", "Example"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// declaredNames gives every name that a file declares at top level, and its methods.
func declaredNames(file *ast.File) []*ast.Ident {
	var names []*ast.Ident
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name)
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name)
				case *ast.ValueSpec:
					names = append(names, s.Names...)
				}
			}
		}
	}
	return names
}

// checkTestdata finds files under testdata that no test of their package seems to open: the package mentions neither
// the file's name, nor its stem, nor its extension as a pattern, nor the folder it lies in.
func checkTestdata(repo *repository) []finding {
	var found []finding
	for _, file := range repo.testdata {
		owner, rest, _ := strings.Cut("/"+file, "/testdata/")
		at := repo.folderAt(strings.TrimPrefix(owner, "/"))
		if at == nil || !testdataMentioned(at, rest) {
			found = append(found, finding{"testdata", file, 0, "no test of its package mentions it"})
		}
	}
	return found
}

// testdataMentioned says whether the strings and fuzz targets of a package lead to a file below its testdata.
func testdataMentioned(at *folder, rest string) bool {
	if target, ok := strings.CutPrefix(rest, "fuzz/"); ok {
		name, _, _ := strings.Cut(target, "/")
		return declares(at, []string{name})
	}
	base := path.Base(rest)
	stem, _, _ := strings.Cut(base, ".")
	wanted := []string{base, stem, "*" + path.Ext(base)}
	if parent := path.Dir(rest); parent != "." {
		wanted = append(wanted, "testdata/"+parent)
	}
	for _, text := range stringsOf(at) {
		for _, w := range wanted {
			if len(w) > 1 && strings.Contains(text, w) {
				return true
			}
		}
	}
	return false
}

// stringsOf gives every string constant in a package, and what its embed directives name.
func stringsOf(at *folder) []string {
	var texts []string
	for _, file := range at.files {
		ast.Inspect(file.syntax, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					texts = append(texts, text)
				}
			}
			return true
		})
		for _, group := range file.syntax.Comments {
			for _, c := range group.List {
				if pattern, ok := strings.CutPrefix(c.Text, "//go:embed "); ok {
					texts = append(texts, pattern)
				}
			}
		}
	}
	return texts
}
