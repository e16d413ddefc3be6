package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/fault"
)

// Formats of a log.
const (
	FormatJSON    = "json"
	FormatConsole = "console"
)

// LogConfig says what is logged, and how.
type LogConfig struct {
	Level  string `doc:"debug (decisions), info (changes), warn (healed) or error (a human must act)."`
	Format string `doc:"json, or console for people to read."`
}

// DefaultLogConfig is for a service.
func DefaultLogConfig() LogConfig { return LogConfig{Level: "info", Format: FormatJSON} }

// Validate demands a known level and format.
func (c *LogConfig) Validate() error {
	switch c.Level {
	case "debug", "info", "warn", "error":
	default:
		return fault.New(fault.Invalid, "level: %q is not debug, info, warn or error", c.Level)
	}
	if c.Format != FormatJSON && c.Format != FormatConsole {
		return fault.New(fault.Invalid, "format: %q is neither json nor console", c.Format)
	}
	return nil
}

// NewLogger makes a logger from a valid LogConfig. It writes to the writer, standard error as a rule, one Write a line;
// the clock, time.Now as a rule, stamps the events with milliseconds of UTC.
func NewLogger(config LogConfig, to io.Writer, now func() time.Time) zerolog.Logger {
	level, err := zerolog.ParseLevel(config.Level)
	if err != nil {
		panic(fmt.Sprintf("telemetry: level %q was not validated", config.Level))
	}
	var out io.Writer = jsonWriter{to}
	if config.Format == FormatConsole {
		out = zerolog.ConsoleWriter{
			Out: consoleWriter{to}, NoColor: true,
			FormatMessage:   func(v any) string { return oneLine(v) },
			FormatTimestamp: func(v any) string { return oneLine(v) },
		}
	}
	return zerolog.New(zerolog.SyncWriter(out)).Level(level).Hook(stamp{now})
}

const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// stamp adds the time; the library's own way has whole seconds unless a global is changed.
type stamp struct{ now func() time.Time }

func (s stamp) Run(e *zerolog.Event, _ zerolog.Level, _ string) {
	e.Str(zerolog.TimestampFieldName, s.now().UTC().Format(timeFormat))
}

// jsonWriter escapes what JSON allows in texts but a terminal obeys. Outside of texts JSON is ASCII, so replacing
// characters of a whole line is safe.
type jsonWriter struct{ to io.Writer }

func (w jsonWriter) Write(line []byte) (int, error) {
	if _, err := w.to.Write(escape(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// consoleWriter escapes the same in finished lines of text.
type consoleWriter struct{ to io.Writer }

func (w consoleWriter) Write(line []byte) (int, error) {
	text, ended := bytes.CutSuffix(line, []byte("\n"))
	text = escape(text)
	if ended {
		text = append(text[:len(text):len(text)], '\n')
	}
	if _, err := w.to.Write(text); err != nil {
		return 0, err
	}
	return len(line), nil
}

// escape replaces control characters (but the end of the line), direction marks and separators by \u escapes.
func escape(line []byte) []byte {
	harmless := func(c rune) bool {
		return c == '\n' || !unicode.IsControl(c) && !unicode.Is(unicode.Bidi_Control, c) &&
			c != utf8.RuneError && c != '\u2028' && c != '\u2029' && c != '\ufeff'
	}
	if bytes.IndexFunc(line, func(c rune) bool { return !harmless(c) }) < 0 {
		return line
	}
	var b strings.Builder
	for _, c := range string(line) {
		if harmless(c) {
			b.WriteRune(c)
		} else {
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return []byte(b.String())
}

// oneLine is a part of a console line without line ends.
func oneLine(v any) string {
	if v == nil {
		return ""
	}
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(fmt.Sprint(v))
}
