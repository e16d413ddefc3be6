package main

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// bannedNames say nothing about what a package is.
func bannedNames() map[string]bool {
	return map[string]bool{"util": true, "utils": true, "common": true, "types": true, "helpers": true, "models": true,
		"misc": true, "base": true}
}

// checkPackageNames refuses package names that mean nothing.
func checkPackageNames(repo *repository) []finding {
	var found []finding
	banned := bannedNames()
	for _, f := range repo.folders {
		if name := f.files[0].syntax.Name.Name; banned[name] {
			found = append(found, finding{"package names", f.files[0].path, 0, "package name " + name + " says nothing"})
		}
	}
	return found
}

// checkPackageDocs wants a doc.go with a package comment in every package with production code.
func checkPackageDocs(repo *repository) []finding {
	var found []finding
	for _, f := range repo.folders {
		files := f.production()
		if len(files) == 0 {
			continue
		}
		described := false
		for _, file := range files {
			described = described || (path.Base(file.path) == "doc.go" && file.syntax.Doc != nil)
		}
		if !described {
			found = append(found, finding{"package docs", f.path, 0, "package without a described doc.go"})
		}
	}
	return found
}

// checkExportedDocs wants a comment on every exported declaration outside tests.
func checkExportedDocs(repo *repository) []finding {
	var found []finding
	repo.eachFile(func(_ *folder, file *sourceFile) {
		if file.test || file.generated || file.syntax.Name.Name == "main" {
			return
		}
		for _, d := range file.syntax.Decls {
			for _, name := range undocumented(d) {
				found = append(found, finding{"exported docs", file.path, repo.line(name.Pos()),
					"exported " + name.Name + " has no comment"})
			}
		}
	})
	return found
}

// undocumented gives the exported names of a declaration that no comment covers. Methods that everybody knows, such as
// Error, say enough by their name.
func undocumented(d ast.Decl) []*ast.Ident {
	if f, ok := d.(*ast.FuncDecl); ok {
		if f.Recv != nil && (!ast.IsExported(receiverName(f.Recv.List[0].Type)) || calledByName()[f.Name.Name]) {
			return nil
		}
		if f.Name.IsExported() && f.Doc == nil {
			return []*ast.Ident{f.Name}
		}
		return nil
	}
	g, ok := d.(*ast.GenDecl)
	if !ok || g.Doc != nil {
		return nil
	}
	var bare []*ast.Ident
	for _, spec := range g.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && s.Comment == nil {
				bare = append(bare, s.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && s.Doc == nil && s.Comment == nil {
					bare = append(bare, name)
				}
			}
		}
	}
	return bare
}

// checkNoInit refuses init functions: nothing happens before main.
func checkNoInit(repo *repository) []finding {
	var found []finding
	repo.eachFile(func(_ *folder, file *sourceFile) {
		if file.generated {
			return
		}
		for _, d := range file.syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				found = append(found, finding{"no init", file.path, repo.line(f.Pos()), "init function"})
			}
		}
	})
	return found
}

// docLink finds links of doc comments: a name in brackets, of a declaration, a method or something in a package.
var docLink = regexp.MustCompile(`\[\*?([A-Za-z_]\w*)(?:\.([A-Za-z_]\w*))?(?:\.([A-Za-z_]\w*))?\]`)

// checkDocLinks follows the links in doc comments to declarations of the same or an imported package of ours.
func checkDocLinks(repo *repository) []finding {
	var found []finding
	repo.eachFile(func(at *folder, file *sourceFile) {
		for _, group := range file.syntax.Comments {
			if repo.positions.Position(group.Pos()).Column != 1 {
				continue // no doc comment
			}
			for _, m := range docLink.FindAllStringSubmatchIndex(group.Text(), -1) {
				text := group.Text()
				link := text[m[0]:m[1]]
				if m[1] < len(text) && text[m[1]] == '(' || !repo.linkIsDead(at, file, text[m[0]+1:m[1]-1]) {
					continue
				}
				found = append(found, finding{"doc links", file.path, repo.line(group.Pos()), "link " + link + " leads nowhere"})
			}
		}
	})
	return found
}

// linkIsDead says whether a doc link names something that does not exist. Only links that go doc would take for one
// count: an exported name, or a package that the file imports.
func (r *repository) linkIsDead(at *folder, file *sourceFile, link string) bool {
	parts := strings.Split(strings.TrimPrefix(link, "*"), ".")
	if ast.IsExported(parts[0]) {
		return !declares(at, parts)
	}
	if len(parts) < 2 || !ast.IsExported(parts[1]) {
		return false
	}
	for _, spec := range file.syntax.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		ours, isOurs := strings.CutPrefix(imported, modulePrefix)
		named := path.Base(imported) == parts[0] || (spec.Name != nil && spec.Name.Name == parts[0])
		if !named {
			continue
		}
		target := r.folderAt(ours)
		return isOurs && (target == nil || !declares(target, parts[1:]))
	}
	return false
}

// declares says whether a package has a declaration Name, or a method or field Name.Member.
func declares(f *folder, parts []string) bool {
	for _, file := range f.files {
		for _, d := range file.syntax.Decls {
			if declarationMatches(d, parts) {
				return true
			}
		}
	}
	return false
}

// declarationMatches says whether one declaration is the one that parts name.
func declarationMatches(d ast.Decl, parts []string) bool {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return len(parts) == 1 && d.Name.Name == parts[0]
		}
		return len(parts) == 2 && receiverName(d.Recv.List[0].Type) == parts[0] && d.Name.Name == parts[1]
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.Name == parts[0] && (len(parts) == 1 || hasMember(s.Type, parts[1])) {
					return true
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if len(parts) == 1 && name.Name == parts[0] {
						return true
					}
				}
			}
		}
	}
	return false
}

// hasMember says whether a struct or interface type has a field or method of that name.
func hasMember(e ast.Expr, name string) bool {
	var list *ast.FieldList
	switch t := e.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return false
	}
	for _, field := range list.List {
		for _, n := range field.Names {
			if n.Name == name {
				return true
			}
		}
	}
	return false
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	markdownCode = regexp.MustCompile(
		"`((?:shared|cli|tools|docs|coordinator|worker-synth|worker-gpu|cuda|e2e|deploy)/[\\w./-]+)`")
)

// checkMarkdownPaths follows relative links, and paths in backticks that start with a top-level folder of ours.
func checkMarkdownPaths(repo *repository) []finding {
	var found []finding
	for file, content := range repo.markdown {
		for i, line := range lines(content) {
			for _, m := range markdownLink.FindAllSubmatch(line, -1) {
				target := string(m[1])
				if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
					continue
				}
				if !repo.exists(path.Join(path.Dir(file), target)) {
					found = append(found, finding{"doc links", file, i + 1, "link to " + target + " leads nowhere"})
				}
			}
			for _, m := range markdownCode.FindAllSubmatch(line, -1) {
				if target := string(m[1]); !repo.exists(target) {
					found = append(found, finding{"doc links", file, i + 1, fmt.Sprintf("no %s in this repository", target)})
				}
			}
		}
	}
	return found
}

// exists looks for a file or folder of the checkout.
func (r *repository) exists(relative string) bool {
	_, err := os.Stat(filepath.Join(r.root, filepath.FromSlash(relative)))
	return err == nil
}
