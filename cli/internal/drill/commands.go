package drill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/proofrack/proofrack/shared/fault"
)

// commandMax bounds one command, holdMax the time between two.
const (
	commandMax = 2 * time.Minute
	holdMax    = time.Hour
)

// meansBytesMax bounds a file of means.
const meansBytesMax = 64 << 10

// commands are the means of one fault in a file.
type commands struct {
	Do   string `toml:"do"`
	Undo string `toml:"undo"`
	Hold string `toml:"hold"`
}

// Commands reads means from TOML: a table per fault with the shell commands do and undo, and hold, a duration between
// them. Unknown names are refused (fault.Invalid).
func Commands(r io.Reader) (map[string]Means, error) {
	text, err := io.ReadAll(io.LimitReader(r, meansBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read means: %w", err)
	}
	if len(text) > meansBytesMax {
		return nil, fault.New(fault.Invalid, "means are over the limit of %d bytes", meansBytesMax)
	}
	var file map[string]commands
	decoder := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		var strict *toml.StrictMissingError
		if errors.As(err, &strict) {
			return nil, fault.New(fault.Invalid, "means: unknown setting\n%s", strict.String())
		}
		return nil, fault.As(fault.Invalid, fmt.Errorf("means: %w", err))
	}
	all := map[string]Means{}
	for name, c := range file {
		if !slices.ContainsFunc(Faults(), func(f Fault) bool { return f.Name == name }) {
			return nil, fault.New(fault.Invalid, "means: no fault %q", name)
		}
		if c.Do == "" {
			return nil, fault.New(fault.Invalid, "means: %s has no command do", name)
		}
		m := Means{Do: shell(c.Do), Undo: shell(c.Undo)}
		if c.Hold != "" {
			if m.Hold, err = time.ParseDuration(c.Hold); err != nil || m.Hold < 0 || m.Hold > holdMax {
				return nil, fault.New(fault.Invalid, "means: %s: hold %q is no time from 0 to %s", name, c.Hold, holdMax)
			}
		}
		all[name] = m
	}
	return all, nil
}

// outputMax is how much of a command's output is kept.
const outputMax = 2000

// shell is a command of the operator's.
func shell(text string) Action {
	if text == "" {
		return Action{}
	}
	return Action{Text: text, Run: func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, commandMax)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", text)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it starts outlives an interrupt of the drill
		cmd.WaitDelay = time.Second                           // and may keep its output open
		out, err := cmd.CombinedOutput()
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil
		}
		said := strings.TrimSpace(string(out[:min(len(out), outputMax)]))
		if err != nil {
			return said, fmt.Errorf("command %q: %w: %s", text, err, said)
		}
		return said, nil
	}}
}
