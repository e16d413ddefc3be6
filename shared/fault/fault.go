package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Kind is the class of an error.
type Kind string

// All kinds.
const (
	Invalid   Kind = "invalid"
	Conflict  Kind = "conflict"
	NotFound  Kind = "not_found"
	Exhausted Kind = "exhausted"
	Transient Kind = "transient"
	Lost      Kind = "lost"
	Corrupt   Kind = "corrupt"
	Device    Kind = "device"
	Internal  Kind = "internal"
	Cancelled Kind = "cancelled"
)

// Kinds lists all kinds.
func Kinds() []Kind {
	return []Kind{Invalid, Conflict, NotFound, Exhausted, Transient, Lost, Corrupt, Device, Internal, Cancelled}
}

// Valid tells whether the kind is one of Kinds.
func (k Kind) Valid() bool {
	for _, kind := range Kinds() {
		if k == kind {
			return true
		}
	}
	return false
}

// Classified is an error that knows its kind.
type Classified interface {
	error
	FaultKind() Kind
}

// KindOf is the kind of the outermost error in the chain that has one; ends of contexts are Cancelled and Transient
// (deadline), anything else is Internal. It is "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	var classified Classified
	switch {
	case errors.As(err, &classified):
		return classified.FaultKind()
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return Transient
	}
	return Internal
}

type kindError struct {
	kind Kind
	hint string
	err  error
}

func (e *kindError) Error() string   { return e.err.Error() }
func (e *kindError) Unwrap() error   { return e.err }
func (e *kindError) FaultKind() Kind { return e.kind }
func (e *kindError) Hint() string    { return e.hint }

// New makes an error of a kind.
func New(kind Kind, format string, args ...any) error {
	return &kindError{kind: kind, err: fmt.Errorf(format, args...)}
}

// As gives an error a kind, without changing its text; nil stays nil.
func As(kind Kind, err error) error {
	if err == nil {
		return nil
	}
	return &kindError{kind: kind, err: err}
}

// WithHint adds what to do about an error; its kind and text stay.
func WithHint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &kindError{kind: KindOf(err), hint: hint, err: err}
}

// Bounds of a report, bytes: what comes from outside or from a crashed process must not fill records.
const (
	MessageBytesMax = 4096
	HintBytesMax    = 512
)

// Report is an error on the wire and in records.
type Report struct {
	Kind    Kind   `json:"kind"`
	Stage   string `json:"stage,omitempty"` // where it happened, e.g. "prove"
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // what to do about it
}

// ReportOf puts an error into a report. Control characters are replaced, long texts cut.
func ReportOf(stage string, err error) *Report {
	if err == nil {
		return nil
	}
	var report *Report
	if errors.As(err, &report) {
		out := *report
		out.Message, out.Kind = printable(err.Error(), MessageBytesMax), KindOf(err)
		return &out
	}
	r := &Report{Kind: KindOf(err), Stage: stage, Message: printable(err.Error(), MessageBytesMax)}
	var k *kindError
	for e := err; errors.As(e, &k); e = k.err {
		if k.hint != "" {
			r.Hint = printable(k.hint, HintBytesMax)
			break
		}
	}
	return r
}

// Error is the message.
func (r *Report) Error() string { return r.Message }

// FaultKind is the kind, Internal when the sender's is unknown here.
func (r *Report) FaultKind() Kind {
	if !r.Kind.Valid() {
		return Internal
	}
	return r.Kind
}

func printable(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit] + " …"
	}
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u202e' {
			return '\uFFFD'
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
