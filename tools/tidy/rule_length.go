package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	functionLinesMax = 70  // the screen
	fileLinesMax     = 800 // house style 4.2: none above
	lineColumnsMax   = 120
)

// exceptionsPath holds the functions that are longer than the screen.
const exceptionsPath = "tools/tidy/exceptions.txt"

// functionKey names a function in exceptions.txt: folder, then receiver type and name.
func functionKey(at *folder, d *ast.FuncDecl) string {
	name := d.Name.Name
	if d.Recv != nil && len(d.Recv.List) == 1 {
		name = receiverName(d.Recv.List[0].Type) + "." + name
	}
	return at.path + " " + name
}

// receiverName gives the type name of a receiver expression.
func receiverName(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.StarExpr:
		return receiverName(t.X)
	case *ast.IndexExpr:
		return receiverName(t.X)
	case *ast.IndexListExpr:
		return receiverName(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}

// exception is one line of exceptions.txt.
type exception struct {
	line, length int
	used         bool
}

// readExceptions parses lines of the form "folder Type.Function length". An absent file means no exceptions.
func readExceptions(root string) (map[string]*exception, []finding) {
	file, err := os.Open(filepath.Join(root, exceptionsPath))
	if err != nil {
		return nil, nil
	}
	defer file.Close()
	known := map[string]*exception{}
	var found []finding
	scanner := bufio.NewScanner(file)
	for n := 1; scanner.Scan(); n++ {
		text := strings.TrimSpace(scanner.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		fields := strings.Fields(text)
		if len(fields) != 3 {
			found = append(found, finding{"function length", exceptionsPath, n, "want: folder, function, length"})
			continue
		}
		length, err := strconv.Atoi(fields[2])
		if err != nil {
			found = append(found, finding{"function length", exceptionsPath, n, "length is not a number"})
			continue
		}
		known[fields[0]+" "+fields[1]] = &exception{line: n, length: length}
	}
	return known, found
}

// tableLines counts the lines of a function that only hold tables: map and list literals, from their first entry on.
func (r *repository) tableLines(body *ast.BlockStmt) int {
	count := 0
	ast.Inspect(body, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		switch literal.Type.(type) {
		case *ast.MapType, *ast.ArrayType:
			count += r.line(literal.Rbrace) - r.line(literal.Lbrace)
			return false
		}
		return true
	})
	return count
}

// checkFunctionLengths holds functions to the screen, and exceptions to their recorded length.
func checkFunctionLengths(repo *repository) []finding {
	known, found := readExceptions(repo.root)
	repo.eachFile(func(at *folder, file *sourceFile) {
		if file.generated {
			return
		}
		for _, d := range file.syntax.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			length := repo.line(f.Body.Rbrace) - repo.line(f.Pos()) + 1 - repo.tableLines(f.Body)
			limit, excepted := functionLinesMax, known[functionKey(at, f)]
			if excepted != nil {
				limit, excepted.used = excepted.length, true
			}
			switch {
			case length > limit:
				found = append(found, finding{"function length", file.path, repo.line(f.Pos()),
					fmt.Sprintf("%s has %d lines, the limit is %d", f.Name.Name, length, limit)})
			case excepted != nil && length < limit:
				found = append(found, finding{"function length", exceptionsPath, excepted.line,
					fmt.Sprintf("%s has only %d lines by now: lower its entry", f.Name.Name, length)})
			}
		}
	})
	for key, e := range known {
		if !e.used {
			found = append(found, finding{"function length", exceptionsPath, e.line, "no such function: " + key})
		}
	}
	return found
}

// checkFileLengths holds files to their limit.
func checkFileLengths(repo *repository) []finding {
	var found []finding
	repo.eachFile(func(_ *folder, file *sourceFile) {
		if count := len(lines(file.content)); !file.generated && count > fileLinesMax {
			found = append(found, finding{"file length", file.path, 0,
				fmt.Sprintf("%d lines, the limit is %d", count, fileLinesMax)})
		}
	})
	return found
}

// longWord finds what cannot be broken: hashes and other hex numbers.
var longWord = regexp.MustCompile(`[0-9a-fA-F]{40,}`)

// columns counts the characters of a line, a tab as one and a hash as none.
func columns(line []byte) int { return utf8.RuneCount(longWord.ReplaceAll(line, nil)) }

// checkLineLengths holds lines of Go source to their limit.
func checkLineLengths(repo *repository) []finding {
	var found []finding
	repo.eachFile(func(_ *folder, file *sourceFile) {
		if file.generated {
			return
		}
		for i, line := range lines(file.content) {
			if width := columns(line); width > lineColumnsMax {
				found = append(found, finding{"line length", file.path, i + 1,
					fmt.Sprintf("%d columns, the limit is %d", width, lineColumnsMax)})
			}
		}
	})
	return found
}
