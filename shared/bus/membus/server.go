package membus

import (
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

// Clock is time as a simulation makes it.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f once, later, never from within itself. Calls due at the same time come in the order in which they
	// were asked for.
	AfterFunc(d time.Duration, f func())
}

// Kind is what a call does.
type Kind string

// Kinds of calls that may be spoiled.
const (
	Publish Kind = "publish"
	Send    Kind = "send"
	Request Kind = "request"
	Settle  Kind = "settle" // Ack, Nak, Term, InProgress
	Read    Kind = "read"   // keys and objects
	Write   Kind = "write"
)

// Call is one call that may be spoiled. Subject is the message's, or <bucket>/<key>.
type Call struct {
	Kind    Kind
	Subject string
}

// Verdict is what becomes of a call. The zero value spoils nothing.
type Verdict struct {
	// Err refuses the call; nothing happens.
	Err error
	// Lose makes nothing happen, without the caller's knowledge for plain messages, with a time-out for others.
	Lose bool
	// LoseAnswer does what was asked and gives the caller a time-out.
	LoseAnswer bool
	// Twice delivers a plain message twice, or publishes a message again with the same id.
	Twice bool
	// Delay delivers a plain message later.
	Delay time.Duration
}

// Config tunes a server.
type Config struct {
	// Clock makes it deterministic; nil is real time.
	Clock Clock
	// Fault is asked before each call; nil spoils nothing. It is called with the server's lock held.
	Fault func(Call) Verdict
	// PendingMax and PendingBytesMax bound plain messages that wait for one handler. 0: 4096 and 16 MiB.
	PendingMax, PendingBytesMax int
}

// Server holds what all connections share.
type Server struct {
	cfg Config

	mu       sync.Mutex
	up       bool
	changed  chan struct{} // closed, and made anew, whenever something may have become possible
	streams  map[string]*stream
	buckets  map[string]*bucket
	objects  map[string]*objectBucket
	subs     []*subscription
	services []*endpoint
	turns    int // whose turn it is among instances of an endpoint
}

// New makes a server with nothing in it.
func New(cfg Config) *Server {
	if cfg.PendingMax == 0 {
		cfg.PendingMax = 4096
	}
	if cfg.PendingBytesMax == 0 {
		cfg.PendingBytesMax = 16 << 20
	}
	return &Server{
		cfg: cfg, up: true, changed: make(chan struct{}),
		streams: map[string]*stream{}, buckets: map[string]*bucket{}, objects: map[string]*objectBucket{},
	}
}

// Cut takes the server away: calls wait (with a clock: fail), plain messages are lost.
func (s *Server) Cut() { s.setUp(false) }

// Heal brings it back.
func (s *Server) Heal() { s.setUp(true) }

func (s *Server) setUp(up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = up
	s.broadcast()
}

// Wipe removes everything stored, as if all disks were lost.
func (s *Server) Wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.buckets {
		for _, w := range b.watches {
			w.stop()
		}
	}
	clear(s.streams)
	clear(s.buckets)
	clear(s.objects)
	s.broadcast()
}

func (s *Server) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) now() time.Time {
	if s.cfg.Clock != nil {
		return s.cfg.Clock.Now()
	}
	return time.Now()
}

// later wakes whoever waits, after a time.
func (s *Server) later(d time.Duration) {
	wake := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.broadcast()
	}
	if s.cfg.Clock != nil {
		return // nobody waits there
	}
	time.AfterFunc(d, wake)
}

func (s *Server) judge(kind Kind, subject string) Verdict {
	if s.cfg.Fault == nil {
		return Verdict{}
	}
	return s.cfg.Fault(Call{kind, subject})
}

var (
	errAway   = fault.New(fault.Transient, "the bus is away")
	errLost   = fault.New(fault.Transient, "no answer in time")
	errClosed = fault.New(fault.Cancelled, "connection to the bus is closed")
)

// streamOf finds the stream that stores a subject.
func (s *Server) streamOf(subject string) *stream {
	for _, st := range s.streams {
		for _, pattern := range st.cfg.Subjects {
			if bus.Match(pattern, subject) {
				return st
			}
		}
	}
	return nil
}
