package telemetry

import (
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a text that shows itself to nobody who prints, logs or encodes it, also not from within unexported fields
// and as the key of a map. The zero value holds "".
type Secret struct {
	text *string // behind a pointer, which printers that may not call methods do not follow
}

// NewSecret hides a text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal is the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// String hides the text.
func (s Secret) String() string { return redacted }

// Format hides the text from every verb of fmt.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) } //nolint:errcheck // fmt.State keeps no errors

// MarshalText hides the text from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue hides the text from log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
