package config

import (
	"fmt"
	"regexp"
	"strings"
)

// exampleWidth is the most columns a comment of an example takes.
const exampleWidth = 100

// Example writes the annotated TOML file of a role: title, then every key with its meaning (the `doc` tag) and, as a
// comment without a space after the "#", its default from the struct that cfg points to. Uncommented gives the file
// with those comment signs removed.
func Example(title string, cfg any) string {
	s := schemaOf(cfg)
	var b strings.Builder
	comment(&b, title)
	comment(&b, "Lines that begin with # and a key show its default. A flag (--set section.key=value) wins over the "+
		"environment ("+EnvPrefix+"SECTION_KEY), that over this file.")
	for _, t := range s.tables {
		if len(t.keys) == 0 {
			continue
		}
		if t.path != "" {
			b.WriteByte('\n')
			comment(&b, t.doc)
			fmt.Fprintf(&b, "[%s]\n", t.path)
		}
		for _, k := range t.keys {
			b.WriteByte('\n')
			comment(&b, k.doc)
			fmt.Fprintf(&b, "#%s = %s\n", k.path[strings.LastIndexByte(k.path, '.')+1:], format(k.value))
		}
	}
	return b.String()
}

var commented = regexp.MustCompile(`(?m)^#([a-z0-9_]+ = )`)

// Uncommented turns the defaults of an example into settings.
func Uncommented(example string) string { return commented.ReplaceAllString(example, "$1") }

// Undocumented are the keys and tables without a `doc` tag.
func Undocumented(cfg any) []string {
	var bare []string
	for _, t := range schemaOf(cfg).tables {
		if t.path != "" && t.doc == "" && len(t.keys) > 0 {
			bare = append(bare, t.path)
		}
		for _, k := range t.keys {
			if k.doc == "" {
				bare = append(bare, k.path)
			}
		}
	}
	return bare
}

// comment writes a text as comment lines that are broken between words.
func comment(b *strings.Builder, text string) {
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > exampleWidth {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	if line != "#" {
		b.WriteString(line + "\n")
	}
}
