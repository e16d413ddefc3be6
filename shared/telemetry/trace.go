package telemetry

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/proofrack/proofrack/shared/fault"
)

// TraceHeader is the name under which a trace context travels in message headers.
const TraceHeader = "traceparent"

// traceBytesMax bounds what is looked at; versions after 00 may be longer than its 55 characters.
const traceBytesMax = 256

// FlagSampled says that the sender may have recorded its span.
const FlagSampled = 0x01

// knownFlags are those of W3C trace context level 2: sampled, and a random trace id. Others are not passed on.
const knownFlags = 0x03

// TraceContext names a span of a trace. The zero value names none.
type TraceContext struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte
}

// NewTrace begins a sampled trace.
func NewTrace() TraceContext {
	c := TraceContext{Flags: knownFlags}
	rand.Read(c.TraceID[:]) //nolint:errcheck // it never fails
	return c.Child()
}

// Child is the context for a span below this one: the same trace, another span.
func (c TraceContext) Child() TraceContext {
	rand.Read(c.SpanID[:]) //nolint:errcheck // it never fails
	c.Flags &= knownFlags
	return c
}

// Valid tells whether it names a span.
func (c TraceContext) Valid() bool { return c.TraceID != [16]byte{} && c.SpanID != [8]byte{} }

// Sampled tells whether the sender may have recorded its span.
func (c TraceContext) Sampled() bool { return c.Flags&FlagSampled != 0 }

// String is the header's value, "" for the zero value.
func (c TraceContext) String() string {
	if !c.Valid() {
		return ""
	}
	return fmt.Sprintf("00-%x-%x-%02x", c.TraceID, c.SpanID, c.Flags&knownFlags)
}

// ParseTrace reads a header's value as W3C Trace Context says: lower-case hex, no zero ids; versions above 00 by their
// first four fields.
func ParseTrace(text string) (TraceContext, error) {
	bad := func(why string) (TraceContext, error) {
		return TraceContext{}, fault.New(fault.Invalid, "trace context %q: %s", text[:min(len(text), 80)], why)
	}
	if len(text) < 55 || len(text) > traceBytesMax {
		return bad("length")
	}
	if text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return bad("hyphens")
	}
	var c TraceContext
	var version, flags [1]byte
	for _, part := range []struct {
		to   []byte
		from string
	}{{version[:], text[:2]}, {c.TraceID[:], text[3:35]}, {c.SpanID[:], text[36:52]}, {flags[:], text[53:55]}} {
		if strings.ToLower(part.from) != part.from {
			return bad("upper-case digits")
		}
		if _, err := hex.Decode(part.to, []byte(part.from)); err != nil {
			return bad("not hex")
		}
	}
	switch {
	case version[0] == 0xff:
		return bad("version")
	case version[0] == 0 && len(text) != 55, len(text) > 55 && text[55] != '-':
		return bad("length")
	case !c.Valid():
		return bad("zero id")
	}
	c.Flags = flags[0] & knownFlags
	return c, nil
}

// Inject puts the context into message headers under its exact name; other spellings are removed. The zero value only
// removes.
func (c TraceContext) Inject(header map[string]string) {
	for name := range header {
		if strings.EqualFold(name, TraceHeader) {
			delete(header, name)
		}
	}
	if c.Valid() {
		header[TraceHeader] = c.String()
	}
}

// ExtractTrace takes the context that a message carries: the header "traceparent" in any case, the exact spelling
// first, else the copy that came in the body. When none is there or none is legal it begins a new trace; the error then
// says what was illegal and is nil when nothing was. The context is always valid, so tracing never fails a message.
func ExtractTrace(header map[string]string, body string) (TraceContext, error) {
	c, err := FindTrace(header, body)
	if !c.Valid() {
		c = NewTrace()
	}
	return c, err
}

// FindTrace is ExtractTrace without a new trace: it gives the zero value when none is there or none is legal.
func FindTrace(header map[string]string, body string) (TraceContext, error) {
	var broken error
	try := func(text string) (TraceContext, bool) {
		if text == "" {
			return TraceContext{}, false
		}
		c, err := ParseTrace(text)
		if err != nil && broken == nil {
			broken = err
		}
		return c, err == nil
	}
	if c, ok := try(header[TraceHeader]); ok {
		return c, nil
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if name != TraceHeader && strings.EqualFold(name, TraceHeader) {
			if c, ok := try(header[name]); ok {
				return c, broken
			}
		}
	}
	if c, ok := try(body); ok {
		return c, broken
	}
	return TraceContext{}, broken
}
