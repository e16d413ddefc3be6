package service_test

import (
	"bufio"
	"io"
	"testing"
	"time"
)

// lines reads a process's output line by line.
type lines struct{ c chan string }

func newLines(r io.Reader) *lines {
	l := &lines{make(chan string, 64)}
	go func() {
		defer close(l.c)
		for s := bufio.NewScanner(r); s.Scan(); {
			l.c <- s.Text()
		}
	}()
	return l
}

func (l *lines) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-l.c:
		return line
	case <-time.After(time.Minute):
		t.Fatal("no line within a minute")
		return ""
	}
}
