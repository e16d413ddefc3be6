package redisledger

import (
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// OpenWithClock is Open with another text of the clock's function.
func OpenWithClock(cfg Config, clock string) (*Ledger, error) {
	l, err := Open(cfg)
	if err == nil {
		l.clock = clock
	}
	return l, err
}

// Scripts gives the text of all scripts by file.
func Scripts() (map[string]string, error) {
	entries, err := files.ReadDir("scripts")
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, e := range entries {
		text, err := files.ReadFile("scripts/" + e.Name())
		if err != nil {
			return nil, err
		}
		texts[e.Name()] = string(text)
	}
	return texts, nil
}

// DecodeBook reads a dump as a script gives it.
func DecodeBook(node job.Node, run string, dump []any) (*ledger.NodeBook, error) {
	s, err := readDump(node, dump)
	if err != nil {
		return nil, err
	}
	return s.book(node, run, 0)
}

// Redump gives the dump of a book after a declaration wrote it.
func Redump(b *ledger.NodeBook) []any { return []any{encodeTime(b.Now.Add(-b.Ahead)), encodeBook(b)} }
