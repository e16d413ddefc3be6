package top

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/proofrack/proofrack/shared/bytesize"
)

// style is how a piece of text looks.
type style uint8

const (
	plain style = iota
	soft
	strong
	good
	busy
	bad
	marked // the chosen line
)

// escape is the style's sequence. Terminals without colours are spared them by the renderer.
func (s style) escape() string {
	return [...]string{plain: "", soft: "\x1b[90m", strong: "\x1b[1m", good: "\x1b[32m", busy: "\x1b[36m", bad: "\x1b[31m",
		marked: "\x1b[7m"}[s]
}

// piece is text of one style.
type piece struct {
	text  string
	style style
}

// line is one line of a screen.
type line []piece

// say makes a line, or a part of one. Everything that is formatted becomes printable.
func say(s style, format string, args ...any) line {
	return line{{printable(fmt.Sprintf(format, args...)), s}}
}

// width is how many columns it takes.
func (l line) width() (n int) {
	for _, p := range l {
		n += ansi.StringWidth(p.text)
	}
	return n
}

// fit cuts a line to a width; what is cut off ends with "~".
func (l line) fit(width int) line {
	switch {
	case l.width() <= width:
		return l
	case width <= 0:
		return nil
	}
	var cut line
	for _, p := range l {
		have := ansi.StringWidth(p.text)
		if have >= width {
			return append(cut, piece{ansi.Truncate(p.text, width-1, "") + "~", p.style})
		}
		cut = append(cut, p)
		width -= have
	}
	return cut
}

// pad brings a line to at least a width.
func (l line) pad(width int) line {
	if missing := width - l.width(); missing > 0 {
		return append(l, piece{strings.Repeat(" ", missing), plain})
	}
	return l
}

// column is a text of exactly a width.
func column(s style, width int, format string, args ...any) line {
	return say(s, format, args...).fit(width).pad(width)
}

// text is the line without styles.
func (l line) text() string {
	var b strings.Builder
	for _, p := range l {
		b.WriteString(p.text)
	}
	return strings.TrimRight(b.String(), " ")
}

// styled is the line with escape sequences.
func (l line) styled() string {
	var b strings.Builder
	for _, p := range l {
		if p.style == plain {
			b.WriteString(p.text)
			continue
		}
		b.WriteString(p.style.escape() + p.text + "\x1b[m")
	}
	return b.String()
}

// mark has a line look chosen over its whole width.
func (l line) mark(width int) line {
	l = l.fit(width).pad(width)
	out := make(line, len(l))
	for i, p := range l {
		out[i] = piece{p.text, marked}
	}
	return out
}

// join puts parts beside each other.
func join(parts ...line) (all line) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// printable is a text as it may be shown: each letter takes one column or two, and none changes others or the
// terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r >= 0x21 && r <= 0x7e:
			return r
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r), unicode.Is(unicode.M, r), // marks combine with the letter before
			r >= 0x1f1e6 && r <= 0x1f1ff, r >= 0x1f3fb && r <= 0x1f3ff, // so do flags and skins
			r >= 0x1100 && r <= 0x11ff, r >= 0xa960 && r <= 0xa97f, r >= 0xd7b0 && r <= 0xd7ff: // and parts of syllables
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// span is a time for people, in at most six columns.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// bar draws how full something is, in a number of columns of at least 3.
func bar(used, whole bytesize.Bytes, width int) line {
	inside := width - 2
	full := 0
	look := good
	if whole > 0 && used > 0 {
		share := min(1, float64(used)/float64(whole))
		full = max(1, int(share*float64(inside)))
		if share > 0.95 {
			look = busy
		}
	}
	return line{{"[", soft}, {strings.Repeat("#", full), look}, {strings.Repeat(".", inside-full), soft}, {"]", soft}}
}

// size is an amount for people, of three digits where it has as many: "21.9 GiB".
func size(b bytesize.Bytes) string {
	value, unit := float64(b), 0
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for value >= 1000 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	digits := 1
	if unit == 0 || value >= 100 || value == float64(int64(value)) {
		digits = 0
	}
	return fmt.Sprintf("%.*f %s", digits, value, units[unit])
}
