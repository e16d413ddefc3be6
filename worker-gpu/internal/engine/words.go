package engine

import (
	"regexp"
	"sync"
)

// Bounds of what is kept of an engine's standard error.
const (
	lineBytesMax = 512
	linesMax     = 12
)

// lastWords keeps the first telling lines and the last ones.
type lastWords struct {
	mu   sync.Mutex
	head []string // the first lines since a line that looks like the cause
	tail []string
}

func (w *lastWords) add(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.head) > 0 && len(w.head) < linesMax || signalForm.MatchString(line) && len(w.head) == 0 {
		w.head = append(w.head, line)
		return
	}
	w.tail = append(w.tail, line)
	if len(w.tail) > linesMax {
		w.tail = w.tail[1:]
	}
}

// lines are what was said when the cause came up, else the last of all.
func (w *lastWords) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.head) > 0 {
		return append([]string(nil), w.head...)
	}
	return append([]string(nil), w.tail...)
}

// first is the first kept line of a form.
func (w *lastWords) first(form *regexp.Regexp) string {
	for _, line := range w.lines() {
		if form.MatchString(line) {
			return line
		}
	}
	return ""
}
