package srs

import (
	"errors"
	"strings"
)

// Why a parameter file is refused, beside ErrEncoding and ErrLength; wrapped by Refusal.
var (
	// ErrCounts: the file is sound in itself but belongs to another circuit.
	ErrCounts = errors.New("point counts are not the circuit's")
	// ErrDigest: the content is not what the manifest lists.
	ErrDigest = errors.New("digest mismatch")
	// ErrUnlisted: no manifest knows the file's name.
	ErrUnlisted = errors.New("not listed in any manifest")
	// ErrKind: a folder, a pipe or another thing that is no regular file.
	ErrKind = errors.New("not a regular file")
)

// Refusal is the error for a parameter file that must not be used. The file is left as it is.
type Refusal struct {
	File            string // path
	Err             error  // wraps one of the sentinels and says where
	Expected, Found string // what differs; empty when Err says it all
	DigestExpected  string // what the manifests list, several joined by " or "; "" if none does
	DigestFound     string // "" when the file could not be hashed
	Advice          string // what to do
}

// Error is one line: file, what differs, expected and found, digests, and what to do.
func (r *Refusal) Error() string {
	var b strings.Builder
	b.WriteString("refuse parameter file " + r.File + ": " + r.Err.Error())
	if r.Expected != "" || r.Found != "" {
		b.WriteString(": expected " + r.Expected + ", found " + r.Found)
	}
	if r.DigestFound != "" {
		expected := r.DigestExpected
		if expected == "" {
			expected = "(none listed)"
		}
		b.WriteString("; digest expected " + expected + ", found " + r.DigestFound)
	}
	return b.String() + "; " + r.Advice
}

// Unwrap gives Err.
func (r *Refusal) Unwrap() error { return r.Err }

// What to do about a refused file.
const (
	adviceDamaged = "the file is damaged or incomplete: fetch or generate it again"
	adviceForeign = "use the parameters of this circuit: check folder and file name, fetch or generate them"
	adviceDigest  = "fetch the published file again, or generate development parameters (params generate), " +
		"which are listed in " + ManifestName + " beside them"
)
