package flight

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Point says what a process has of one class at one stage from a time on.
type Point struct {
	At      time.Time      `json:"at"`
	Process string         `json:"process"`
	Class   ledger.Class   `json:"class"`
	Stage   Stage          `json:"stage"`
	Pieces  int64          `json:"pieces"`
	Bytes   bytesize.Bytes `json:"bytes"`
}

// cellCount is classes times stages.
const cellCount = classCount * liveCount

func cellOf(class int, stage Stage) uint8 { return uint8(class*liveCount + int(stage)) }

// entry is a cell's count from a time on.
type entry struct {
	at    int64 // ns since 1970
	cell  uint8
	count count
}

// ring keeps the last entries; what falls out of it becomes the base that the rest starts from.
type ring struct {
	entries []entry
	next    int
	full    bool
	base    [cellCount]count
}

func newRing(n int) ring { return ring{entries: make([]entry, n)} }

func (r *ring) put(e entry) {
	if r.full {
		old := &r.entries[r.next]
		r.base[old.cell] = old.count
	}
	r.entries[r.next] = e
	if r.next++; r.next == len(r.entries) {
		r.next, r.full = 0, true
	}
}

// points gives the base, at the time of the oldest entry, and the entries.
func (r *ring) points(process string) []Point {
	ordered := r.entries[:r.next]
	if r.full {
		ordered = append(append(make([]entry, 0, len(r.entries)), r.entries[r.next:]...), ordered...)
	}
	if len(ordered) == 0 {
		return nil
	}
	out := make([]Point, 0, len(ordered)+cellCount)
	for cell, n := range r.base {
		if n.pieces != 0 {
			out = append(out, pointOf(process, entry{ordered[0].at, uint8(cell), n}))
		}
	}
	for _, e := range ordered {
		out = append(out, pointOf(process, e))
	}
	return out
}

func pointOf(process string, e entry) Point {
	return Point{
		At: time.Unix(0, e.at).UTC(), Process: process, Class: classes()[int(e.cell)/liveCount],
		Stage: Stage(int(e.cell) % liveCount), Pieces: e.count.pieces, Bytes: bytesize.Bytes(e.count.bytes),
	}
}

// Timeline is what another process had, by its reports. Its methods may be called from several goroutines.
type Timeline struct {
	mu   sync.Mutex
	ring ring
	now  [cellCount]count
}

// NewTimeline makes an empty one that keeps n points, at least 1.
func NewTimeline(n int) *Timeline { return &Timeline{ring: newRing(max(1, n))} }

// Follow notes what changed since the last report. A report without classes says that the process is gone.
func (t *Timeline) Follow(at time.Time, r *Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var now [cellCount]count
	for i := range r.Classes {
		class := indexOf(r.Classes[i].Class)
		for _, n := range r.Classes[i].Live {
			if n.Stage < Gone {
				now[cellOf(class, n.Stage)] = count{n.Pieces, int64(n.Bytes)}
			}
		}
	}
	for cell := range now {
		if now[cell] != t.now[cell] {
			t.ring.put(entry{at.UnixNano(), uint8(cell), now[cell]})
		}
	}
	t.now = now
}

// Points are the counts as they changed, as far back as the time line goes.
func (t *Timeline) Points(process string) []Point {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ring.points(process)
}

// WritePoints writes points as JSON lines.
func WritePoints(w io.Writer, points []Point) error {
	buffered := bufio.NewWriter(w)
	encoder := json.NewEncoder(buffered)
	for i := range points {
		if err := encoder.Encode(&points[i]); err != nil {
			return fmt.Errorf("write time line: %w", err)
		}
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("write time line: %w", err)
	}
	return nil
}

// Bounds of a time line that is read.
const (
	lineBytesMax = 4096
	linesMax     = 1 << 20
)

// ReadPoints reads what WritePoints wrote. Errors name the line; kind Invalid.
func ReadPoints(r io.Reader) ([]Point, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineBytesMax)
	var out []Point
	number := 0
	for lines.Scan() {
		number++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if number > linesMax {
			return nil, fault.New(fault.Invalid, "read time line: more than %d lines", linesMax)
		}
		var p Point
		err := json.Unmarshal(line, &p)
		if err == nil {
			err = p.check()
		}
		if err != nil {
			return nil, fault.As(fault.Invalid, fmt.Errorf("read time line: line %d: %w", number, err))
		}
		out = append(out, p)
	}
	if err := lines.Err(); err != nil {
		return nil, fault.As(fault.Invalid, fmt.Errorf("read time line: line %d: %w", number+1, err))
	}
	return out, nil
}

func (p *Point) check() error {
	r := Report{Process: p.Process, Classes: []ClassReport{{Class: p.Class}}}
	if err := r.Check(); err != nil {
		return err
	}
	if p.Stage >= Gone || p.Pieces < 0 || p.Bytes < 0 || int64(p.Bytes) > int64(bytesize.Max) {
		return fault.New(fault.Invalid, "%d pieces of %d bytes %s", p.Pieces, int64(p.Bytes), p.Stage)
	}
	if year := p.At.Year(); year < 1970 || year > 9999 {
		return fault.New(fault.Invalid, "time %s", p.At)
	}
	return nil
}
