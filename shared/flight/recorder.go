package flight

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Backing is what kind of memory a buffer has, for the comparison with what is resident.
type Backing uint8

// Backings.
const (
	Declared  Backing = iota // memory that is spoken for and not measured
	Anonymous                // mapped without a file, or the Go heap
	Shared                   // a file on a tmpfs
	File                     // a file on a disk
	backings
)

// Bounds and defaults of Config.
const (
	PointsDefault       = 4096
	PointsMax           = 1 << 20
	CollectAfterDefault = 2 * time.Second
)

// Config is one process's recorder.
type Config struct {
	// Process names the process in reports, e.g. "synth" or "engine gpu0". Required, at most ProcessBytesMax bytes.
	Process string
	// Resident tells what the process has in memory; nil leaves that out of reports.
	Resident func() (Resident, error)
	// Proofs tells how many proofs are started and not finished, and how many wait; nil for processes without any.
	Proofs func() (pending, waiting int)
	// Points is the length of the time line's ring, 1 to PointsMax; 0 is PointsDefault.
	Points int
	// CollectAfter is how long a released piece of the Go heap may be there before Collect runs the garbage collector; 0
	// is CollectAfterDefault.
	CollectAfter time.Duration
	// Strict has defects panic. It is for tests.
	Strict bool
}

// Resident is what a process has in memory, by kind.
type Resident struct{ Anonymous, File, Shared bytesize.Bytes }

// Validate reports all problems at once (kind Invalid).
func (c Config) Validate() error {
	var all []error
	if c.Process == "" || len(c.Process) > ProcessBytesMax {
		all = append(all, fmt.Errorf("process %q needs 1 to %d bytes", c.Process, ProcessBytesMax))
	}
	if c.Points < 0 || c.Points > PointsMax {
		all = append(all, fmt.Errorf("points %d: must be 0 to %d", c.Points, PointsMax))
	}
	if c.CollectAfter < 0 {
		all = append(all, fmt.Errorf("collect after %s: must not be negative", c.CollectAfter))
	}
	return fault.As(fault.Invalid, errors.Join(all...))
}

// count is pieces and their bytes.
type count struct{ pieces, bytes int64 }

func (c *count) add(pieces, bytes int64) {
	c.pieces += pieces
	c.bytes += bytes
}

// classState is what is known of one class.
type classState struct {
	live     [liveCount]count
	kept     count // of live: assets
	sum      count // of live
	high     count // of sum, each on its own
	gone     count // ever
	lag      [lagCount]uint64
	pieces   Buffer // head of the list of live pieces, oldest first
	backings [backings]int64
}

// Recorder counts the buffers of one process. Its methods may be called from several goroutines and on nil.
type Recorder struct {
	config Config
	began  time.Time
	epoch  int64 // began, ns since 1970

	mu      sync.Mutex
	classes [classCount]classState
	sum     int64 // bytes of all classes
	high    int64 // of sum
	defects uint64
	defect  string // the last one
	leaks   func(ledger.Class) bool
	ring    ring
}

// New makes a recorder. Errors are of kind Invalid.
func New(config Config) (*Recorder, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configure flight recorder: %w", err)
	}
	if config.Points == 0 {
		config.Points = PointsDefault
	}
	if config.CollectAfter == 0 {
		config.CollectAfter = CollectAfterDefault
	}
	r := &Recorder{config: config, began: time.Now(), ring: newRing(config.Points)}
	r.epoch = r.began.UnixNano()
	for i := range r.classes {
		head := &r.classes[i].pieces
		head.next, head.prev = head, head
	}
	return r, nil
}

// Plant has leaks decide which buffers of a class are never counted as gone although they are. It is for tests of what
// finds leaks; it must be called before the first buffer.
func (r *Recorder) Plant(leaks func(ledger.Class) bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaks = leaks
}

// Allocate counts a new buffer that is going to be filled. The label says whose it is: an attempt, a circuit.
func (r *Recorder) Allocate(class ledger.Class, bytes bytesize.Bytes, backing Backing, label string) *Buffer {
	return r.begin(Allocated, class, bytes, backing, label)
}

// Map counts a buffer that was complete when this process got it.
func (r *Recorder) Map(class ledger.Class, bytes bytesize.Bytes, backing Backing, label string) *Buffer {
	return r.begin(Mapped, class, bytes, backing, label)
}

func (r *Recorder) begin(
	stage Stage, class ledger.Class, bytes bytesize.Bytes, backing Backing, label string,
) *Buffer {
	if r == nil {
		return nil
	}
	index := indexOf(class)
	if index < 0 || bytes < 0 || backing >= backings {
		panic(fmt.Sprintf("flight: buffer of class %q, %d bytes, backing %d", class, int64(bytes), backing))
	}
	b := &Buffer{
		recorder: r, class: uint8(index), stage: stage, backing: backing, bytes: int64(bytes),
		label: label[:min(len(label), LabelBytesMax)],
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b.since = r.now()
	b.lost = r.leaks != nil && r.leaks(class)
	s := &r.classes[b.class]
	s.pieces.insert(b)
	s.sum.add(1, b.bytes)
	s.high.pieces, s.high.bytes = max(s.high.pieces, s.sum.pieces), max(s.high.bytes, s.sum.bytes)
	s.backings[backing] += b.bytes
	r.sum += b.bytes
	r.high = max(r.high, r.sum)
	r.change(b, stage, 1, b.since)
	return b
}

// now is the time since the start; it does not jump with the clock.
func (r *Recorder) now() time.Duration { return time.Since(r.began) }

// change puts a piece into, or takes it out of, a stage that counts.
func (r *Recorder) change(b *Buffer, stage Stage, sign int64, now time.Duration) {
	cell := &r.classes[b.class].live[stage]
	cell.add(sign, sign*b.bytes)
	r.ring.put(entry{at: r.epoch + int64(now), cell: cellOf(int(b.class), stage), count: *cell})
}

// wrong counts a defect.
func (r *Recorder) wrong(b *Buffer, text string) {
	r.defects++
	r.defect = fmt.Sprintf("%s buffer %q, %s: %s", classes()[b.class], b.label, b.stage, text)
	if r.config.Strict {
		panic("flight: " + r.defect)
	}
}

// Collect runs the garbage collector if memory of the Go heap was released a while ago and is still there, once for
// each piece. Who calls it every few seconds sees idle processes give memory back.
func (r *Recorder) Collect() {
	if r == nil {
		return
	}
	if r.due() {
		runtime.GC()
	}
}

func (r *Recorder) due() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := false
	now := r.now()
	for i := range r.classes {
		head := &r.classes[i].pieces
		for b := head.next; b != head; b = b.next {
			if b.heap && b.stage == Released && !b.tried && now-b.releasedAt >= r.config.CollectAfter {
				b.tried, found = true, true
			}
		}
	}
	return found
}

// Points are the counts as they changed, as far back as the ring goes.
func (r *Recorder) Points() []Point {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ring.points(r.config.Process)
}
