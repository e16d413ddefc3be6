package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/proofrack/proofrack/shared/fault"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Key    string // full path, "nats.urls"; in a Validate method the field's own, "urls"; "" for the whole
	Source string // where the value came from, "" when that does not matter
	Text   string
}

// Error is key, text and source in one line.
func (p *Problem) Error() string {
	text := p.Text
	if p.Key != "" {
		text = p.Key + ": " + text
	}
	if p.Source != "" {
		text += " (" + p.Source + ")"
	}
	return text
}

// FaultKind is Invalid.
func (p *Problem) FaultKind() fault.Kind { return fault.Invalid }

// Problems collects what a Validate method finds. The zero value is ready.
//
//	var p config.Problems
//	p.Check(c.Slots > 0, "slots", "must be at least 1, is %d", c.Slots)
//	return p.Err()
type Problems struct{ all []error }

// Check notes a problem with a key of the struct unless ok holds.
func (p *Problems) Check(ok bool, key, format string, args ...any) {
	if !ok {
		p.all = append(p.all, &Problem{Key: key, Text: fmt.Sprintf(format, args...)})
	}
}

// Err is nil when every check held, else all problems joined.
func (p *Problems) Err() error { return errors.Join(p.all...) }

// Error is everything that is wrong with a configuration, in the order of the struct's keys.
type Error struct {
	Problems []Problem
}

// Error lists the problems, one a line when there are several.
func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return "configuration: " + e.Problems[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "configuration has %d problems:", len(e.Problems))
	for _, p := range e.Problems {
		b.WriteString("\n  " + p.Error())
	}
	return b.String()
}

// FaultKind is Invalid.
func (e *Error) FaultKind() fault.Kind { return fault.Invalid }

// validator is what a struct implements to check itself.
type validator interface{ Validate() error }

// validate asks every struct of the schema; keys that already have a problem are not complained of again.
func (s *schema) validate(report *Error) {
	seen := map[string]bool{}
	for _, p := range report.Problems {
		seen[p.Key] = true
	}
	said := map[string]bool{}
	// Children first: a parent that asks its children itself then says nothing new.
	for i := len(s.tables) - 1; i >= 0; i-- {
		t := s.tables[i]
		v, ok := t.value.Addr().Interface().(validator)
		if !ok {
			continue
		}
		for _, err := range flatten(v.Validate()) {
			p := Problem{Key: t.path, Text: err.Error()}
			var own *Problem
			if errors.As(err, &own) {
				p.Key = join(t.path, own.Key)
				p.Text = strings.TrimPrefix(p.Text, own.Key+": ")
			}
			text := p.Error()
			if t.path == "" && own == nil {
				text = p.Text
			}
			if !said[text] && !(p.Key != "" && seen[p.Key]) {
				said[text] = true
				report.Problems = append(report.Problems, p)
			}
		}
	}
}

func join(path, name string) string {
	switch {
	case path == "":
		return name
	case name == "":
		return path
	}
	return path + "." + name
}

// flatten takes joined errors apart.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	//nolint:errorlint // only what is joined at the top is taken apart: deeper, the text around it belongs to it
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	return []error{err}
}
