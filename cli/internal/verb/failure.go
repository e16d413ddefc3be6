package verb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/proofrack/proofrack/shared/config"
	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/prover"
)

// kind says what sort of failure ended a verb; it decides the exit code.
type kind string

// The kinds; their exit codes are in doc.go.
const (
	internalFault kind = "internal"
	usage         kind = "usage"
	badInput      kind = "bad input"
	notVerified   kind = "not verified"
	noParams      kind = "parameters missing"
	badParams     kind = "parameters wrong"
	noRoom        kind = "no room"
	jobFailed     kind = "job failed"
	notReady      kind = "not ready"
	timedOut      kind = "timed out"
	noAnswer      kind = "no answer"
	interrupted   kind = "interrupted"
)

// exitCode is the process's answer for a kind.
func (k kind) exitCode() int {
	switch k {
	case usage:
		return 2
	case badInput:
		return 3
	case notVerified:
		return 4
	case noParams:
		return 5
	case badParams:
		return 6
	case noRoom:
		return 7
	case jobFailed:
		return 8
	case notReady:
		return 9
	case timedOut:
		return 10
	case noAnswer:
		return 11
	case interrupted:
		return 130
	case internalFault:
	}
	return 1
}

// failure is an error with its kind and, where there is one, the remedy.
type failure struct {
	kind kind
	err  error
	hint string
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// fail makes a failure with a remedy, which may be empty.
func fail(k kind, hint, format string, args ...any) error {
	return &failure{kind: k, err: fmt.Errorf(format, args...), hint: hint}
}

// misuse is a usage failure without a remedy beyond its text.
func misuse(format string, args ...any) error { return fail(usage, "", format, args...) }

// classify finds the kind of any error.
func classify(err error) *failure {
	var f *failure
	var input *c1.InputError
	var refusal *srs.Refusal
	switch {
	case errors.As(err, &f):
		return &failure{kind: f.kind, err: err, hint: f.hint}
	case errors.Is(err, context.Canceled):
		return &failure{kind: interrupted, err: errors.New("interrupted; nothing was written")}
	case errors.As(err, &input):
		return &failure{kind: badInput, err: err}
	case errors.As(err, &refusal):
		return &failure{kind: badParams, err: err}
	case errors.Is(err, prover.ErrProof), errors.Is(err, groth16.ErrInvalid):
		return &failure{kind: notVerified, err: err,
			hint: `nothing was written; "proofrack synth --check" tells whether synthesis is at fault`}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &failure{kind: noRoom, err: err, hint: "free some space or choose another folder; nothing was left behind"}
	case errors.Is(err, syscall.ENOMEM):
		return &failure{kind: noRoom, err: err}
	}
	return &failure{kind: internalFault, err: err}
}

// reportFailure writes the one line about an error and gives the exit code.
func reportFailure(w io.Writer, asJSON bool, err error) int {
	f := classify(err)
	message := config.HideUserInfoIn(sentence(f.err.Error()))
	if asJSON {
		line, marshalErr := json.Marshal(map[string]any{
			"error": map[string]any{"kind": f.kind, "message": message, "hint": f.hint, "exit_code": f.kind.exitCode()},
		})
		if marshalErr == nil {
			fmt.Fprintf(w, "%s\n", line)
		}
		return f.kind.exitCode()
	}
	if f.hint != "" {
		message += "; " + f.hint
	}
	fmt.Fprintf(w, "proofrack: %s\n", message)
	return f.kind.exitCode()
}

// sentence makes a text of several lines one of a single line, as people write it: between lines stands "; ", or a
// space after a colon, a comma or a semicolon. Errors that are joined have a line each.
func sentence(text string) string {
	var joined strings.Builder
	for line := range strings.FieldsFuncSeq(text, isBreak) {
		line = strings.TrimSpace(oneLine(line))
		if before := joined.String(); line != "" && before != "" {
			if strings.ContainsAny(before[len(before)-1:], ":,;") {
				joined.WriteString(" ")
			} else {
				joined.WriteString("; ")
			}
		}
		joined.WriteString(line)
	}
	return joined.String()
}

// isBreak tells what ends a line.
func isBreak(r rune) bool { return r == '\n' || r == '\r' || r == 0x2028 || r == 0x2029 }

// oneLine makes a text harmless on a terminal: control characters, line breaks among them, become spaces.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == 0x202e || isBreak(r) {
			return ' '
		}
		return r
	}, text)
}
