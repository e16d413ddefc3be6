package assetcopy

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// Path is what a file's URL has behind the address; the circuit's id follows.
const Path = "/assets/"

// Bounds of a Giver.
const (
	grantsMax    = 64
	transfersMax = 4
	chunkBytes   = 64 << 10
)

// GiverConfig says what is given, and how fast.
type GiverConfig struct {
	// Find gives the path of a circuit's parameter file; an error means that there is none to give.
	Find func(circuit string) (path string, err error)
	// RateMax caps the bytes per second of all transfers together, at 64 KiB or more; 0 does not.
	RateMax bytesize.Bytes
	// StallMax is how long the other side may take nothing.
	StallMax time.Duration
}

// Validate demands a Find and sane bounds.
func (c *GiverConfig) Validate() error {
	if c.Find == nil || c.RateMax != 0 && c.RateMax < chunkBytes || c.StallMax <= 0 {
		return fault.New(fault.Invalid, "give files: rate %s (0, or %s or more), stall %s",
			c.RateMax, bytesize.Bytes(chunkBytes), c.StallMax)
	}
	return nil
}

// Giver gives files to who has a token. It is an http.Handler; its methods may be called from several goroutines.
type Giver struct {
	config GiverConfig
	limit  *rate.Limiter
	slots  chan struct{}

	mu     sync.Mutex
	grants map[[sha256.Size]byte]grant
}

type grant struct {
	circuit string
	expires time.Time
}

// NewGiver makes one; nobody may fetch anything yet. Errors: kind Invalid.
func NewGiver(config GiverConfig) (*Giver, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	limit := rate.NewLimiter(rate.Inf, chunkBytes)
	if config.RateMax > 0 {
		limit = rate.NewLimiter(rate.Limit(config.RateMax), chunkBytes)
	}
	return &Giver{
		config: config, limit: limit, slots: make(chan struct{}, transfersMax), grants: map[[sha256.Size]byte]grant{},
	}, nil
}

// Grant lets who has a token fetch a circuit's file until expires. Of too many grants the one that ends first goes.
func (g *Giver) Grant(circuit, token string, expires time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.grants[sha256.Sum256([]byte(token))] = grant{circuit, expires}
	for len(g.grants) > grantsMax {
		var first [sha256.Size]byte
		var at time.Time
		for key, held := range g.grants {
			if at.IsZero() || held.expires.Before(at) {
				first, at = key, held.expires
			}
		}
		delete(g.grants, first)
	}
}

func (g *Giver) granted(circuit, token string) bool {
	key := sha256.Sum256([]byte(token)) // so that the time of the look-up tells nothing of tokens
	g.mu.Lock()
	defer g.mu.Unlock()
	held, ok := g.grants[key]
	if ok && time.Now().After(held.expires) {
		delete(g.grants, key)
		return false
	}
	return ok && held.circuit == circuit
}

// ServeHTTP answers GET and HEAD of Path with a circuit, with Range.
func (g *Giver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	circuit, ok := strings.CutPrefix(r.URL.Path, Path)
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "only GET "+Path+"<circuit>", http.StatusNotFound)
		return
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || !g.granted(circuit, token) {
		http.Error(w, "no token for this file", http.StatusForbidden)
		return
	}
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	default:
		http.Error(w, "too many transfers", http.StatusServiceUnavailable)
		return
	}
	g.give(w, r, circuit)
}

func (g *Giver) give(w http.ResponseWriter, r *http.Request, circuit string) {
	path, err := g.config.Find(circuit)
	if err != nil {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	slow := &slowWriter{ResponseWriter: w, giver: g, ctx: r.Context(), control: http.NewResponseController(w)}
	http.ServeContent(slow, r, "", time.Time{}, io.NewSectionReader(file, 0, info.Size()))
}

// slowWriter writes as fast as all transfers together may, and gives up on who takes nothing.
type slowWriter struct {
	http.ResponseWriter

	giver   *Giver
	ctx     context.Context
	control *http.ResponseController
}

func (s *slowWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		chunk := b[:min(len(b), chunkBytes)]
		if err := s.giver.limit.WaitN(s.ctx, len(chunk)); err != nil {
			return n, err
		}
		err := s.control.SetWriteDeadline(time.Now().Add(s.giver.config.StallMax))
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			return n, err
		}
		m, err := s.ResponseWriter.Write(chunk)
		n += m
		if err != nil {
			return n, err
		}
		b = b[m:]
	}
	return n, nil
}
