package rack

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// Bounds of what is remembered.
const (
	NodesMax     = 4096
	ProcessesMax = 64
	runningMax   = 4096 // attempts of one beat
)

// Config tunes the registry.
type Config struct {
	// Heartbeat is how often workers beat, Lease how long one may be silent before it counts as gone.
	Heartbeat, Lease time.Duration
}

// DefaultConfig is design section 4's start values.
func DefaultConfig() Config { return Config{Heartbeat: 5 * time.Second, Lease: 15 * time.Second} }

// Validate tells all that is wrong.
func (c *Config) Validate() error {
	var errs []error
	if c.Heartbeat <= 0 {
		errs = append(errs, fmt.Errorf("heartbeat must be more than 0, not %s", c.Heartbeat))
	}
	if c.Lease < 2*c.Heartbeat {
		errs = append(errs, fmt.Errorf("lease must be at least two heartbeats of %s, not %s", c.Heartbeat, c.Lease))
	}
	return errors.Join(errs...)
}

// Process is one worker process as of its last beat.
type Process struct {
	Beat            wire.Beat
	FirstAt, SeenAt time.Time
	// Slow says that it beats too seldom to be told from a dead one, "" when not. It is given no work: Beat says so, too,
	// in place of what it said of itself.
	Slow string
}

// slow is why a process beats too seldom: what is not heard of for two of the rack's heartbeats does not advance, and
// its attempts would be lost again and again.
func (r *Registry) slow(b *wire.Beat) string {
	every := time.Duration(b.HeartbeatMS) * time.Millisecond
	if every < 2*r.cfg.Heartbeat {
		return ""
	}
	return fmt.Sprintf("it beats every %s, the rack's heartbeat is %s and its lease %s: set its worker.heartbeat to that "+
		"of the coordinators (times.heartbeat)", every, r.cfg.Heartbeat, r.cfg.Lease)
}

// slowKept bounds how long a process that beats too seldom is remembered between its beats.
const slowKept = 10 * time.Minute

// silentMax is how long a process may be silent before it counts as gone.
func (r *Registry) silentMax(p *Process) time.Duration {
	if p.Slow == "" {
		return r.cfg.Lease
	}
	every := time.Duration(p.Beat.HeartbeatMS) * time.Millisecond
	return max(r.cfg.Lease, min(2*every, slowKept)) // it is shown with its reason, and does not come and go
}

// Live tells how an attempt advances.
type Live struct {
	Node     job.Node
	Role     string // of the process that works on it
	Stage    job.Stage
	Progress uint64
	// Handoff is where its segment lies, HandoffReason why, when that is not the preferred place.
	Handoff, HandoffReason string
	// SeenAt is when a process named it last, MovedAt when it advanced last.
	SeenAt, MovedAt time.Time
}

// Host is the last report of the process that acts for a host.
type Host struct {
	Report   wire.HostReport
	Boot     string
	Instance string
	// Seq is that of the beat.
	Seq    uint64
	SeenAt time.Time
	// Count is how many reports had come, of all nodes, with this one: a later one has a higher count, also when the
	// node was gone in between.
	Count uint64
}

// Node is what is known of a node. It is a copy.
type Node struct {
	Node      job.Node
	Processes []Process // by role, then by start
	Host      *Host     // nil before the first report
	SeenAt    time.Time
}

type node struct {
	processes map[string]*Process
	host      *Host
	live      map[job.Attempt]*Live
}

// Registry is the nodes. All methods may be called from several goroutines.
type Registry struct {
	cfg Config

	mu      sync.RWMutex
	nodes   map[job.Node]*node
	feeds   map[*Feed]struct{}
	dropped uint64
	reports uint64
}

// New makes an empty registry.
func New(cfg Config) (*Registry, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure registry of nodes: %w", err)
	}
	return &Registry{cfg: cfg, nodes: map[job.Node]*node{}, feeds: map[*Feed]struct{}{}}, nil
}

// Beat takes a beat, which was checked. It tells whether it counted: late ones do not.
func (r *Registry) Beat(b *wire.Beat, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.nodes[b.Node]
	if n == nil {
		if len(r.nodes) >= NodesMax {
			r.dropped++
			return false
		}
		n = &node{processes: map[string]*Process{}, live: map[job.Attempt]*Live{}}
		r.nodes[b.Node] = n
	}
	p := n.processes[b.Instance]
	switch {
	case p == nil && len(n.processes) >= ProcessesMax, len(b.Running) > runningMax:
		r.dropped++
		return false
	case p == nil:
		p = &Process{FirstAt: now}
		n.processes[b.Instance] = p
	case b.Seq <= p.Beat.Seq:
		return false
	}
	p.Beat, p.SeenAt, p.Slow = *b, now, r.slow(b)
	if p.Slow != "" {
		p.Beat.Reason = strings.TrimSuffix(p.Slow+"; "+b.Reason, "; ")
		if b.State == wire.StateReady {
			p.Beat.State = wire.StateNotReady
		}
	}
	n.advance(b, now)
	if b.Host != nil && !r.lateReport(n.host, b) {
		r.reports++
		n.host = &Host{
			Report: *b.Host, Boot: b.Boot, Instance: b.Instance, Seq: b.Seq, SeenAt: now, Count: r.reports,
		}
	}
	r.tell(b.Node)
	return true
}

// lateReport tells whether a host report was overtaken by one of another process of its host: after a change of the
// process that reports, both may be on their way. The times are of one clock, the host's. One that is behind by more
// than a lease is no late report, but of a clock that was set back.
func (r *Registry) lateReport(last *Host, b *wire.Beat) bool {
	if last == nil || last.Boot != b.Boot || last.Instance == b.Instance {
		return false
	}
	behind := last.Report.At.Sub(b.Host.At)
	return behind > 0 && behind <= r.cfg.Lease
}

// Reports is how many host reports have come so far: later ones have a higher count.
func (r *Registry) Reports() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.reports
}

// advance takes what a process works on.
func (n *node) advance(b *wire.Beat, now time.Time) {
	for _, running := range b.Running {
		l := n.live[running.Attempt]
		if l == nil {
			l = &Live{Node: b.Node, MovedAt: now}
			n.live[running.Attempt] = l
		}
		if running.Stage != l.Stage || b.Role != l.Role || running.Progress > l.Progress {
			l.MovedAt = now
		}
		l.Role, l.Stage, l.Progress, l.SeenAt = b.Role, running.Stage, running.Progress, now
		if running.Handoff != "" {
			l.Handoff, l.HandoffReason = running.Handoff, running.HandoffReason
		}
	}
}

// Expire drops processes that have been silent for too long. It gives the nodes that have none left.
func (r *Registry) Expire(now time.Time) (gone []job.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, n := range r.nodes {
		changed := false
		for instance, p := range n.processes {
			if silent := now.Sub(p.SeenAt); silent > r.silentMax(p) || silent > 3*r.cfg.Heartbeat && n.replaced(p) {
				delete(n.processes, instance)
				changed = true
			}
		}
		for a, l := range n.live {
			if now.Sub(l.SeenAt) > 2*r.cfg.Lease {
				delete(n.live, a)
			}
		}
		if len(n.processes) == 0 {
			delete(r.nodes, name)
			gone = append(gone, name)
		}
		if changed {
			r.tell(name)
		}
	}
	slices.Sort(gone)
	return gone
}

// replaced tells whether a later start in the same role beats: the earlier one is dead, not late.
func (n *node) replaced(p *Process) bool {
	for _, other := range n.processes {
		if other.Beat.Role == p.Beat.Role && other.FirstAt.After(p.SeenAt) {
			return true
		}
	}
	return false
}

// Node gives one node.
func (r *Registry) Node(name job.Node) (Node, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	n, ok := r.nodes[name]
	if !ok {
		return Node{}, false
	}
	return n.copy(name), true
}

// Nodes gives all nodes, by name.
func (r *Registry) Nodes() []Node {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]Node, 0, len(r.nodes))
	for name, n := range r.nodes {
		out = append(out, n.copy(name))
	}
	slices.SortFunc(out, func(a, b Node) int { return strings.Compare(string(a.Node), string(b.Node)) })
	return out
}

func (n *node) copy(name job.Node) Node {
	out := Node{Node: name, Processes: make([]Process, 0, len(n.processes))}
	for _, p := range n.processes {
		out.Processes = append(out.Processes, *p)
		if p.SeenAt.After(out.SeenAt) {
			out.SeenAt = p.SeenAt
		}
	}
	slices.SortFunc(out.Processes, func(a, b Process) int {
		if c := strings.Compare(a.Beat.Role, b.Beat.Role); c != 0 {
			return c
		}
		if c := a.FirstAt.Compare(b.FirstAt); c != 0 {
			return c
		}
		return strings.Compare(a.Beat.Instance, b.Beat.Instance)
	})
	if n.host != nil {
		host := *n.host
		out.Host = &host
	}
	return out
}

// Live tells how an attempt advances on a node, when one of its processes named it.
func (r *Registry) Live(name job.Node, a job.Attempt) (Live, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	n, ok := r.nodes[name]
	if !ok {
		return Live{}, false
	}
	l, ok := n.live[a]
	if !ok {
		return Live{}, false
	}
	return *l, true
}

// LiveOn gives all attempts that processes of a node named lately.
func (r *Registry) LiveOn(name job.Node) map[job.Attempt]Live {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := map[job.Attempt]Live{}
	if n, ok := r.nodes[name]; ok {
		for a, l := range n.live {
			out[a] = *l
		}
	}
	return out
}

// Dropped counts beats that went beyond the bounds.
func (r *Registry) Dropped() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.dropped
}

// Feed tells which nodes changed; changes are merged per node.
type Feed struct {
	registry *Registry
	ready    chan struct{}

	mu    sync.Mutex
	dirty map[job.Node]struct{}
}

// Follow begins a feed; at first every node is in it. It must be closed.
func (r *Registry) Follow() *Feed {
	f := &Feed{registry: r, ready: make(chan struct{}, 1), dirty: map[job.Node]struct{}{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.feeds[f] = struct{}{}
	for name := range r.nodes {
		f.add(name)
	}
	return f
}

// Ready gives a value when there is something to take.
func (f *Feed) Ready() <-chan struct{} { return f.ready }

// Take gives the nodes that changed since the last call, by name.
func (f *Feed) Take() []job.Node {
	f.mu.Lock()
	names := make([]job.Node, 0, len(f.dirty))
	for name := range f.dirty {
		names = append(names, name)
	}
	clear(f.dirty)
	f.mu.Unlock()
	slices.Sort(names)
	return names
}

// Close ends the feed.
func (f *Feed) Close() {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	delete(f.registry.feeds, f)
}

func (f *Feed) add(name job.Node) {
	f.mu.Lock()
	f.dirty[name] = struct{}{}
	f.mu.Unlock()
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

func (r *Registry) tell(name job.Node) {
	for f := range r.feeds {
		f.add(name)
	}
}
