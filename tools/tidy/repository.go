package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// modulePrefix is what the import path of every package of ours starts with; the rest is its folder.
const modulePrefix = "github.com/proofrack/proofrack/"

// sourceFile is one Go file.
type sourceFile struct {
	path      string // slash-separated, relative to the root
	content   []byte
	syntax    *ast.File
	test      bool
	generated bool
}

// folder is one folder with Go files: at most one package and its external tests.
type folder struct {
	path  string
	files []*sourceFile
}

// production gives the files that are not tests.
func (f *folder) production() []*sourceFile {
	var files []*sourceFile
	for _, file := range f.files {
		if !file.test {
			files = append(files, file)
		}
	}
	return files
}

// repository is everything the rules look at.
type repository struct {
	root      string
	positions *token.FileSet
	folders   []*folder         // sorted by path
	markdown  map[string][]byte // path -> content
	testdata  []string          // every file below a folder named testdata
}

// line gives the line number of a position.
func (r *repository) line(p token.Pos) int { return r.positions.Position(p).Line }

// folderAt finds the folder of that path, or nil.
func (r *repository) folderAt(path string) *folder {
	for _, f := range r.folders {
		if f.path == path {
			return f
		}
	}
	return nil
}

// eachFile calls visit for every Go file.
func (r *repository) eachFile(visit func(*folder, *sourceFile)) {
	for _, f := range r.folders {
		for _, file := range f.files {
			visit(f, file)
		}
	}
}

// skipped names folders that hold nothing of ours.
func skipped(name string) bool {
	return name == "bin" || name == "dist" || name == "cover" || name == "scratch" || name == "node_modules" ||
		(strings.HasPrefix(name, ".") && name != ".")
}

// load reads and parses the checkout under root.
func load(root string) (*repository, error) {
	repo := &repository{root: root, positions: token.NewFileSet(), markdown: map[string][]byte{}}
	byPath := map[string]*folder{}
	walk := func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		if entry.IsDir() {
			if skipped(entry.Name()) && relative != "." {
				return fs.SkipDir
			}
			return nil
		}
		return repo.add(byPath, name, relative)
	}
	if err := filepath.WalkDir(root, walk); err != nil {
		return nil, fmt.Errorf("load checkout %s: %w", root, err)
	}
	for _, f := range byPath {
		repo.folders = append(repo.folders, f)
	}
	sort.Slice(repo.folders, func(i, j int) bool { return repo.folders[i].path < repo.folders[j].path })
	return repo, nil
}

// add sorts one file into the repository.
func (r *repository) add(byPath map[string]*folder, name, relative string) error {
	inTestdata := strings.Contains("/"+relative, "/testdata/")
	if inTestdata {
		r.testdata = append(r.testdata, relative)
		return nil
	}
	isGo, isMarkdown := strings.HasSuffix(relative, ".go"), strings.HasSuffix(relative, ".md")
	if !isGo && !isMarkdown {
		return nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read source: %w", err)
	}
	if isMarkdown {
		r.markdown[relative] = content
		return nil
	}
	syntax, err := parser.ParseFile(r.positions, name, content, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("parse %s: %w", relative, err)
	}
	at := path.Dir(relative)
	if byPath[at] == nil {
		byPath[at] = &folder{path: at}
	}
	byPath[at].files = append(byPath[at].files, &sourceFile{
		path: relative, content: content, syntax: syntax,
		test: strings.HasSuffix(relative, "_test.go"), generated: ast.IsGenerated(syntax),
	})
	return nil
}

// lines splits a file without losing empty lines.
func lines(content []byte) [][]byte {
	return bytes.Split(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"))
}
