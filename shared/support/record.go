package support

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
)

// Bounds.
const (
	// LogBytesMax is how much of its log a Record keeps.
	LogBytesMax = 512 << 10
	// PackedBytesMax is the size of a message; the oldest lines are left out of one that would be larger.
	PackedBytesMax = 384 << 10
	// unpackedBytesMax bounds what a message may become.
	unpackedBytesMax = 16 << 20
)

// Record collects what a program can tell. The nil Record collects nothing.
type Record struct {
	program, build string
	started        time.Time

	mu       sync.Mutex
	settings string
	log      []byte // at most twice LogBytesMax
}

// New makes a record of a program that starts now.
func New(program, build string) *Record {
	return &Record{program: program, build: build, started: time.Now()}
}

// Write takes a line of the log. It never fails.
func (r *Record) Write(line []byte) (int, error) {
	if r == nil {
		return len(line), nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, line[:min(len(line), LogBytesMax)]...)
	if len(r.log) > 2*LogBytesMax {
		r.log = append([]byte(nil), tail(r.log, LogBytesMax)...)
	}
	return len(line), nil
}

// tail is the last whole lines of a text, at most so many bytes.
func tail(text []byte, most int) []byte {
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	if _, whole, ok := bytes.Cut(text, []byte("\n")); ok {
		return whole
	}
	return text
}

// SetSettings takes the settings, as the program prints them.
func (r *Record) SetSettings(text string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settings = text
}

// Report is what a program tells.
type Report struct {
	Program  string    `json:"program"`
	Build    string    `json:"build"`
	Go       string    `json:"go"`
	System   string    `json:"system"`
	Started  time.Time `json:"started"`
	At       time.Time `json:"at"`
	Settings string    `json:"settings"`
	Metrics  string    `json:"metrics"`
	Log      string    `json:"log"`
}

// Report is what is to be told now, without secrets; metrics are given. Of the nil Record it is nearly empty.
func (r *Record) Report(metrics string) *Report {
	out := &Report{
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, At: time.Now().UTC(), Metrics: metrics,
	}
	if r == nil {
		return out
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out.Program, out.Build, out.Started = r.program, r.build, r.started.UTC()
	out.Settings, out.Log = Scrub(r.settings), Scrub(string(tail(r.log, LogBytesMax)))
	return out
}

// Pack makes a message of a report. The oldest lines of the log are left out as far as it takes.
func (p *Report) Pack() ([]byte, error) {
	short := *p
	for {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if err := json.NewEncoder(w).Encode(&short); err != nil {
			return nil, fmt.Errorf("pack report of %s: %w", p.Program, err)
		}
		if err := w.Close(); err != nil {
			return nil, fmt.Errorf("pack report of %s: %w", p.Program, err)
		}
		switch {
		case b.Len() <= PackedBytesMax:
			return b.Bytes(), nil
		case short.Log != "":
			short.Log = string(tail([]byte(short.Log), len(short.Log)/2))
		case short.Metrics != "":
			short.Metrics = ""
		default:
			return nil, fault.New(fault.Exhausted, "report of %s is larger than %d bytes", p.Program, PackedBytesMax)
		}
	}
}

// Unpack reads a message. Errors are of kind Corrupt.
func Unpack(data []byte) (*Report, error) {
	if len(data) > PackedBytesMax {
		return nil, fault.New(fault.Corrupt, "report of %d bytes is too large", len(data))
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fault.As(fault.Corrupt, fmt.Errorf("unpack report: %w", err))
	}
	text, err := io.ReadAll(io.LimitReader(z, unpackedBytesMax+1))
	if err != nil {
		return nil, fault.As(fault.Corrupt, fmt.Errorf("unpack report: %w", err))
	}
	if len(text) > unpackedBytesMax {
		return nil, fault.New(fault.Corrupt, "unpack report: it is larger than %d bytes", unpackedBytesMax)
	}
	var p Report
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fault.As(fault.Corrupt, fmt.Errorf("unpack report: %w", err))
	}
	return &p, nil
}

type key struct{}

// With gives a context that carries a record to the program's parts.
func With(ctx context.Context, r *Record) context.Context { return context.WithValue(ctx, key{}, r) }

// Of is the record that a context carries, nil for none.
func Of(ctx context.Context) *Record {
	r, _ := ctx.Value(key{}).(*Record)
	return r
}
