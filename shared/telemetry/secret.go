package telemetry

import (
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a text that shows itself to nobody who prints, logs or encodes it.
type Secret string

// Reveal is the text.
func (s Secret) Reveal() string { return string(s) }

// String hides the text.
func (s Secret) String() string { return redacted }

// Format hides the text from every verb of fmt.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) } //nolint:errcheck // fmt.State keeps no errors

// MarshalText hides the text from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue hides the text from log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
