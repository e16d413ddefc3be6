package handoff

import (
	"errors"
	"fmt"
	"strings"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// What callers may ask for with errors.Is.
var (
	// ErrRefused: what lies under the segment's name is not the segment of that attempt (kind Corrupt).
	ErrRefused = errors.New("not the segment that was asked for")
	// ErrNotSealed: the segment was not sealed within the limit (kind Transient).
	ErrNotSealed = errors.New("segment was not sealed in time")
	// ErrAbsent: there is no such segment (kind NotFound).
	ErrAbsent = errors.New("no such segment")
	// ErrBusy: another process works on a segment of the same attempt (kind Conflict).
	ErrBusy = errors.New("segment is held by another process")
	// ErrClosed: the draft or segment was closed or given back before (kind Internal).
	ErrClosed = errors.New("segment is closed")
)

// Use is somebody's files on the file system of a spill folder.
type Use struct {
	Path  string         `json:"path"`
	Bytes bytesize.Bytes `json:"bytes"`
	UID   uint32         `json:"uid"`
}

// Shortage says that a segment does not fit, with both numbers and who has the rest. Its kind is Exhausted.
type Shortage struct {
	Path      string
	Kind      Kind
	NeedBytes bytesize.Bytes
	HasBytes  bytesize.Bytes
	// Usage tells who has the rest; it is the zero value when that could not be found out. Foreign are the largest of
	// others' files.
	Usage   Usage
	Foreign []Use
}

// Error implements error.
func (s *Shortage) Error() string {
	text := fmt.Sprintf("segment needs %s, %s (%s) has %s", s.NeedBytes, s.Path, s.Kind, s.HasBytes)
	if s.Usage.CapacityBytes == 0 {
		return text
	}
	text += fmt.Sprintf(" of %s: %s in %d segments, %s free for reuse, %s of others",
		s.Usage.CapacityBytes, s.Usage.SegmentBytes, s.Usage.SegmentCount, s.Usage.PoolBytes, s.Usage.ForeignBytes)
	var names []string
	for _, u := range s.Foreign {
		names = append(names, fmt.Sprintf("%s %s uid %d", u.Path, u.Bytes, u.UID))
	}
	if len(names) > 0 {
		text += " (" + strings.Join(names, ", ") + ")"
	}
	return text
}

// FaultKind implements fault.Classified.
func (*Shortage) FaultKind() fault.Kind { return fault.Exhausted }
