package flight

import (
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Bounds of reports.
const (
	ProcessBytesMax = 64
	LabelBytesMax   = 96
	// PiecesMax is how many pieces a report names in each class.
	PiecesMax     = 4
	textBytesMax  = 512
	piecesLookMax = 4096
)

// Report is what one process has at one time.
type Report struct {
	Process string        `json:"process"`
	Classes []ClassReport `json:"classes,omitempty"` // that the process ever had
	// LiveBytes are all classes together, HighBytes the most that was ever live at once.
	LiveBytes bytesize.Bytes `json:"live_bytes"`
	HighBytes bytesize.Bytes `json:"high_bytes"`
	// Pending are proofs started and not finished, Waiting those that have not been started.
	Pending int `json:"pending,omitempty"`
	Waiting int `json:"waiting,omitempty"`
	// RSSBytes are resident; BeyondBytes of them belong to no class: allocator, libraries, code.
	RSSBytes    bytesize.Bytes `json:"rss_bytes,omitempty"`
	BeyondBytes bytesize.Bytes `json:"beyond_bytes,omitempty"`
	// Defects count transitions that cannot be; Defect is the last one.
	Defects uint64 `json:"defects,omitempty"`
	Defect  string `json:"defect,omitempty"`
}

// ClassReport is one class of buffers.
type ClassReport struct {
	Class ledger.Class `json:"class"`
	Live  []StageCount `json:"live,omitempty"` // stages that have any, in order
	// Pieces and Bytes are all stages together, of which KeptPieces and KeptBytes are assets.
	Pieces     int64          `json:"pieces"`
	Bytes      bytesize.Bytes `json:"bytes"`
	KeptPieces int64          `json:"kept_pieces,omitempty"`
	KeptBytes  bytesize.Bytes `json:"kept_bytes,omitempty"`
	// HighPieces and HighBytes are the most ever, each on its own.
	HighPieces int64          `json:"high_pieces"`
	HighBytes  bytesize.Bytes `json:"high_bytes"`
	// GonePieces and GoneBytes count all that was ever given back.
	GonePieces int64          `json:"gone_pieces,omitempty"`
	GoneBytes  bytesize.Bytes `json:"gone_bytes,omitempty"`
	// Lag counts those by the time from released to gone; LagBounds has the buckets. It is empty when none is gone.
	Lag []uint64 `json:"lag,omitempty"`
	// Oldest are some live pieces: first those that are no assets in use, then assets; at most PiecesMax.
	Oldest []Piece `json:"oldest,omitempty"`
}

// StageCount is what is at one stage.
type StageCount struct {
	Stage  Stage          `json:"stage"`
	Pieces int64          `json:"pieces"`
	Bytes  bytesize.Bytes `json:"bytes"`
}

// Piece is one live buffer.
type Piece struct {
	Label string         `json:"label"`
	Stage Stage          `json:"stage"`
	Bytes bytesize.Bytes `json:"bytes"`
	Asset bool           `json:"asset,omitempty"`
	// Age is since it was made, and Released since it was released, ms.
	AgeMS      int64 `json:"age_ms"`
	ReleasedMS int64 `json:"released_ms,omitempty"`
}

// Report is what the process has now.
func (r *Recorder) Report() Report {
	if r == nil {
		return Report{}
	}
	var resident Resident
	if r.config.Resident != nil {
		if now, err := r.config.Resident(); err == nil { // a report without it is better than none
			resident = now
		}
	}
	out := Report{Process: r.config.Process}
	if r.config.Proofs != nil {
		out.Pending, out.Waiting = r.config.Proofs()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out.LiveBytes, out.HighBytes = bytesize.Bytes(r.sum), bytesize.Bytes(r.high)
	out.Defects, out.Defect = r.defects, r.defect[:min(len(r.defect), textBytesMax)]
	var backed [backings]int64
	for i := range r.classes {
		s := &r.classes[i]
		for k, bytes := range s.backings {
			backed[k] += bytes
		}
		if s.high.pieces > 0 {
			out.Classes = append(out.Classes, r.classReport(i))
		}
	}
	out.RSSBytes = resident.Anonymous + resident.File + resident.Shared
	out.BeyondBytes = max(0, resident.Anonymous-bytesize.Bytes(backed[Anonymous])) +
		max(0, resident.File-bytesize.Bytes(backed[File])) + max(0, resident.Shared-bytesize.Bytes(backed[Shared]))
	return out
}

func (r *Recorder) classReport(i int) ClassReport {
	s := &r.classes[i]
	c := ClassReport{
		Class: classes()[i], Pieces: s.sum.pieces, Bytes: bytesize.Bytes(s.sum.bytes),
		KeptPieces: s.kept.pieces, KeptBytes: bytesize.Bytes(s.kept.bytes),
		HighPieces: s.high.pieces, HighBytes: bytesize.Bytes(s.high.bytes),
		GonePieces: s.gone.pieces, GoneBytes: bytesize.Bytes(s.gone.bytes),
	}
	for stage, n := range s.live {
		if n.pieces != 0 {
			c.Live = append(c.Live, StageCount{Stage(stage), n.pieces, bytesize.Bytes(n.bytes)})
		}
	}
	if s.gone.pieces > 0 {
		c.Lag = slices.Clone(s.lag[:])
	}
	c.Oldest = r.oldest(&s.pieces)
	return c
}

// oldest names pieces of a class: those that are no assets in use, or assets there twice, before the others.
func (r *Recorder) oldest(head *Buffer) []Piece {
	var first, rest []Piece
	now := r.now()
	seen := map[string]bool{}
	looked := 0
	for b := head.next; b != head && looked < piecesLookMax && len(first) < PiecesMax; b = b.next {
		looked++
		p := Piece{
			Label: b.label, Stage: b.stage, Bytes: bytesize.Bytes(b.bytes), Asset: b.asset,
			AgeMS: (now - b.since).Milliseconds(),
		}
		if b.stage == Released {
			p.ReleasedMS = (now - b.releasedAt).Milliseconds()
		}
		switch {
		case !b.asset || b.stage == Released || seen[b.label]:
			first = append(first, p)
		case len(rest) < PiecesMax:
			rest = append(rest, p)
		}
		seen[b.label] = true
	}
	return append(first, rest[:min(len(rest), PiecesMax-len(first))]...)
}

// Class is the report of a class; one with nothing when it has none.
func (r *Report) Class(class ledger.Class) ClassReport {
	for i := range r.Classes {
		if r.Classes[i].Class == class {
			return r.Classes[i]
		}
	}
	return ClassReport{Class: class}
}

// Idle tells whether nothing is left but assets, and no proof is pending.
func (r *Report) Idle() bool {
	for i := range r.Classes {
		if c := &r.Classes[i]; c.Pieces != c.KeptPieces || c.Bytes != c.KeptBytes || c.at(Released) > 0 {
			return false
		}
	}
	return r.Pending == 0 && r.Waiting == 0
}

func (c *ClassReport) at(stage Stage) int64 {
	for _, n := range c.Live {
		if n.Stage == stage {
			return n.Pieces
		}
	}
	return 0
}

// Check refuses what no recorder reports (kind Invalid).
func (r *Report) Check() error {
	if r.Process == "" || len(r.Process) > ProcessBytesMax || len(r.Classes) > classCount || len(r.Defect) > textBytesMax {
		return fault.New(fault.Invalid, "flight report of process %.80q is over a bound", r.Process)
	}
	for i := range r.Classes {
		c := &r.Classes[i]
		if indexOf(c.Class) < 0 {
			return fault.New(fault.Invalid, "flight report of process %s has class %.40q", r.Process, c.Class)
		}
		if len(c.Live) > liveCount || len(c.Lag) > lagCount || len(c.Oldest) > PiecesMax {
			return fault.New(fault.Invalid, "flight report of process %s, class %s, is over a bound", r.Process, c.Class)
		}
		for _, n := range c.Live {
			if n.Stage >= Gone {
				return fault.New(fault.Invalid, "flight report of process %s has live buffers at %s", r.Process, n.Stage)
			}
		}
		for _, p := range c.Oldest {
			if len(p.Label) > LabelBytesMax || p.Stage >= Gone {
				return fault.New(fault.Invalid, "flight report of process %s has piece %.100q", r.Process, p.Label)
			}
		}
	}
	return nil
}

// Leak is a buffer that should be gone.
type Leak struct {
	Process string       `json:"process"`
	Class   ledger.Class `json:"class"`
	Piece
	Why string `json:"why"`
}

// GraceDefault is how long a buffer may outlive its release, or its attempt, before it counts as a leak.
const GraceDefault = 10 * time.Second

// Leaks names the buffers in reports that should be gone: released for longer than grace, of an attempt that is over,
// or an asset that the process has twice. alive tells whether the owner that a label names may still have buffers.
func Leaks(reports []Report, alive func(label string) bool, grace time.Duration) []Leak {
	var found []Leak
	for i := range reports {
		r := &reports[i]
		for k := range r.Classes {
			c := &r.Classes[k]
			newest := map[string]int{}
			for n, p := range c.Oldest {
				if p.Asset && p.Stage != Released {
					newest[p.Label] = n
				}
			}
			for n, p := range c.Oldest {
				why := ""
				switch {
				case time.Duration(p.ReleasedMS)*time.Millisecond > grace:
					why = "it was released and its memory is still there"
				case time.Duration(p.AgeMS)*time.Millisecond <= grace || p.Stage == Released:
				case !p.Asset && !alive(p.Label):
					why = "its owner is over"
				case p.Asset && newest[p.Label] != n:
					why = "the process has it twice"
				}
				if why != "" {
					found = append(found, Leak{Process: r.Process, Class: c.Class, Piece: p, Why: why})
				}
			}
		}
	}
	return found
}
