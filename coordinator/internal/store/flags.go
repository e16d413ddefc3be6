package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// intakeKey is the key, in BucketNodes, of whether intake is paused.
const intakeKey = "intake"

// clockKey is a key in BucketNodes that is written to learn the time.
const clockKey = "clock"

// nodePrefix is what keys of nodes begin with (wire.NodeKey).
const nodePrefix = "node."

// Intake tells whether new jobs are taken.
type Intake struct {
	Paused bool      `json:"paused,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// NodeMark is what operators and the leader decided about a node; it outlives both.
type NodeMark struct {
	Cordoned bool `json:"cordoned,omitempty"`
	Draining bool `json:"draining,omitempty"`
	// Quarantined are devices taken out for cause; Paroled are those let back since they proved a known answer, and when.
	Quarantined map[job.Device]Quarantine `json:"quarantined,omitempty"`
	Paroled     map[job.Device]Quarantine `json:"paroled,omitempty"`
}

// Quarantine is why and when a device was taken out, or let back.
type Quarantine struct {
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// TryCount is how many pauses it has sat out, Next when it may prove a known answer; Failed says what was wrong with
	// the last one.
	TryCount int       `json:"try_count,omitempty"`
	Next     time.Time `json:"next,omitzero"`
	Failed   string    `json:"failed,omitempty"`
}

// Text is the quarantine in words.
func (q Quarantine) Text() string {
	text := q.Reason
	if q.Failed != "" {
		text += "; known answer not proved: " + q.Failed
	}
	if !q.Next.IsZero() {
		text += "; a known answer is proved after " + q.Next.UTC().Format(time.RFC3339)
	}
	return text
}

// empty tells that a mark says nothing.
func (m NodeMark) empty() bool { return !m.Cordoned && !m.Draining && len(m.Quarantined) == 0 }

// flags is the bucket c2-nodes in memory.
type flags struct {
	kv bus.KV

	mu        sync.RWMutex
	intake    Intake
	intakeRev uint64
	marks     map[job.Node]NodeMark
	revisions map[job.Node]uint64
}

// see takes an entry of the bucket, or what was just written to it, whichever is later. A key that is gone without a
// deletion, which shows by the revision that it had, was lost with the store's disk: revisions begin anew then. older
// tells that a later one is known.
func (f *flags) see(e bus.Entry) (older bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Key == intakeKey {
		if e.Revision < f.intakeRev {
			return true
		}
		if e.Deleted && e.Revision == f.intakeRev {
			e.Revision = 0
		}
		f.intakeRev, f.intake = e.Revision, Intake{}
		if !e.Deleted {
			_ = json.Unmarshal(e.Value, &f.intake) // unreadable: not paused, which an operator sees
		}
		return false
	}
	name, ok := strings.CutPrefix(e.Key, nodePrefix)
	node, err := job.ParseNode(name)
	if !ok || err != nil {
		return false
	}
	if e.Revision < f.revisions[node] {
		return true
	}
	if e.Deleted && e.Revision == f.revisions[node] {
		e.Revision = 0
	}
	var mark NodeMark
	if !e.Deleted && json.Unmarshal(e.Value, &mark) != nil {
		return false
	}
	f.put(node, mark, e.Revision)
	return false
}

// seeFlag takes an entry that the watch tells.
func (s *Store) seeFlag(e bus.Entry) {
	if s.flags.see(e) && !e.Deleted {
		s.flagDoubts.add(e.Key, time.Now())
	}
}

// known is the latest revision of a key that was seen.
func (f *flags) known(key string) uint64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if key == intakeKey {
		return f.intakeRev
	}
	return f.revisions[job.Node(strings.TrimPrefix(key, nodePrefix))]
}

// keys are the keys of what was decided.
func (f *flags) keys() []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var keys []string
	if f.intake != (Intake{}) {
		keys = append(keys, intakeKey)
	}
	for node, mark := range f.marks {
		if !mark.empty() {
			keys = append(keys, nodePrefix+string(node))
		}
	}
	return keys
}

// loseFlag takes away what is known by a revision and what a restored bucket has not.
func (s *Store) loseFlag(key string, known uint64) {
	if s.flags.known(key) == known && !s.flags.see(bus.Entry{Key: key, Revision: known, Deleted: true}) {
		s.log.Warn().Str("key", key).Uint64("known", known).Msg("mark is gone: NATS was restored")
	}
}

// restoreFlag takes an entry of a restored bucket in the place of what is known by a revision, if it still is.
func (s *Store) restoreFlag(e bus.Entry, known uint64) {
	f := &s.flags
	f.mu.Lock()
	node := job.Node(strings.TrimPrefix(e.Key, nodePrefix))
	switch {
	case e.Revision == known: // it is here
		f.mu.Unlock()
		return
	case e.Key == intakeKey && f.intakeRev == known:
		f.intakeRev = 0
	case e.Key != intakeKey && f.revisions[node] == known:
		f.revisions[node] = 0
	default:
		f.mu.Unlock()
		return
	}
	f.mu.Unlock()
	f.see(e)
	s.log.Warn().Str("key", e.Key).Uint64("revision", e.Revision).Msg("mark went back: NATS was restored")
}

func (f *flags) put(node job.Node, mark NodeMark, revision uint64) {
	if f.marks == nil {
		f.marks, f.revisions = map[job.Node]NodeMark{}, map[job.Node]uint64{}
	}
	f.marks[node], f.revisions[node] = mark, revision
}

// Intake tells whether intake is paused.
func (s *Store) Intake() Intake {
	s.flags.mu.RLock()
	defer s.flags.mu.RUnlock()
	return s.flags.intake
}

// SetIntake pauses or resumes intake of the whole rack.
func (s *Store) SetIntake(ctx context.Context, i Intake) error {
	data, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("encode intake flag: %w", err)
	}
	revision, err := s.replace(ctx, s.flags.kv, intakeKey, func([]byte) ([]byte, error) { return data, nil })
	if err != nil {
		return fmt.Errorf("write intake flag: %w", err)
	}
	s.flags.see(bus.Entry{Key: intakeKey, Value: data, Revision: revision})
	return nil
}

// Mark gives what was decided about a node.
func (s *Store) Mark(node job.Node) NodeMark {
	s.flags.mu.RLock()
	defer s.flags.mu.RUnlock()
	return s.flags.marks[node]
}

// Marks gives the nodes about which something was decided.
func (s *Store) Marks() map[job.Node]NodeMark {
	s.flags.mu.RLock()
	defer s.flags.mu.RUnlock()
	out := map[job.Node]NodeMark{}
	for node, mark := range s.flags.marks {
		if !mark.empty() {
			out[node] = mark
		}
	}
	return out
}

// SetMark changes what was decided about a node. The change gets a copy.
func (s *Store) SetMark(ctx context.Context, node job.Node, change func(*NodeMark)) (NodeMark, error) {
	var mark NodeMark
	revision, err := s.replace(ctx, s.flags.kv, wire.NodeKey(node), func(old []byte) ([]byte, error) {
		mark = NodeMark{}
		if len(old) > 0 {
			if err := json.Unmarshal(old, &mark); err != nil {
				return nil, fault.As(fault.Corrupt, fmt.Errorf("decode mark: %w", err))
			}
		}
		if mark.Quarantined == nil {
			mark.Quarantined = map[job.Device]Quarantine{}
		}
		if mark.Paroled == nil {
			mark.Paroled = map[job.Device]Quarantine{}
		}
		change(&mark)
		return json.Marshal(mark)
	})
	if err != nil {
		return NodeMark{}, fmt.Errorf("write mark of node %s: %w", node, err)
	}
	s.flags.mu.Lock()
	defer s.flags.mu.Unlock()
	if revision > s.flags.revisions[node] {
		s.flags.put(node, mark, revision)
	}
	return mark, nil
}

// Clock is the time by the server's clock. What is kept for a time is kept by it: a coordinator whose own clock is
// wrong would remove all results at once, or the slices of jobs that are just being accepted.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	written := func([]byte) ([]byte, error) { return []byte("{}"), nil }
	if _, err := s.replace(ctx, s.flags.kv, clockKey, written); err != nil {
		return time.Time{}, fmt.Errorf("ask for the time: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	e, err := s.flags.kv.Get(ctx, clockKey)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the time: %w", err)
	}
	return e.At, nil
}

// replace writes a value that is made from the present one (empty when there is none).
func (s *Store) replace(
	ctx context.Context, kv bus.KV, key string, change func([]byte) ([]byte, error),
) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	for range conflictsMax {
		e, err := kv.Get(ctx, key)
		missing := fault.KindOf(err) == fault.NotFound
		if err != nil && !missing {
			return 0, err
		}
		data, err := change(e.Value)
		if err != nil {
			return 0, err
		}
		var revision uint64
		if missing {
			revision, err = kv.Create(ctx, key, data)
		} else {
			revision, err = kv.Update(ctx, key, data, e.Revision)
		}
		if err == nil || fault.KindOf(err) != fault.Conflict {
			return revision, err
		}
	}
	return 0, fault.New(fault.Transient, "%s was changed by others %d times", key, conflictsMax)
}
