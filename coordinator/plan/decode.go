package plan

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/proofrack/proofrack/shared/fault"
)

// Duration is a time that files write as "15s" or "2m".
type Duration time.Duration

var _ encoding.TextUnmarshaler = (*Duration)(nil)

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no duration like 15s", text)
	}
	*d = Duration(parsed)
	return nil
}

// MarshalText is the duration in the same form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// decode reads TOML into a value. Unknown keys are errors, as are files over FileBytesMax. what names the file.
func decode(r io.Reader, what string, into any) error {
	text, err := io.ReadAll(io.LimitReader(r, FileBytesMax+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	if len(text) > FileBytesMax {
		return fault.New(fault.Invalid, "read %s: it is over the limit of %d bytes", what, FileBytesMax)
	}
	decoder := toml.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(into)
	if err == nil {
		return nil
	}
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		first := &unknown.Errors[0]
		line, _ := first.Position()
		return fault.WithHint(
			fault.New(fault.Invalid, "read %s: line %d: unknown key %q", what, line, strings.Join(first.Key(), ".")),
			"docs/plan.md lists the keys")
	}
	var broken *toml.DecodeError
	if errors.As(err, &broken) {
		line, column := broken.Position()
		return fault.New(fault.Invalid, "read %s: line %d, column %d: %s", what, line, column,
			strings.TrimPrefix(broken.Error(), "toml: "))
	}
	return fault.As(fault.Invalid, fmt.Errorf("read %s: %w", what, err))
}
