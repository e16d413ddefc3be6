package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/ledger"
)

// slowSegments tells whether the book is free while trimmed memory is given back.
type slowSegments struct {
	*handoff.Spill

	lock *os.File
	free bool
}

func (s *slowSegments) Trim(kind handoff.Kind, keep bytesize.Bytes) (func(), error) {
	free, err := s.Spill.Trim(kind, keep)
	return func() {
		s.free = unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
		free()
		_ = unix.Flock(int(s.lock.Fd()), unix.LOCK_UN)
	}, err
}

func TestMemoryThatGivesWayIsFreedWithoutTheLock(t *testing.T) {
	t.Parallel()
	n, ctx := newNode(t), t.Context()
	lock, err := os.OpenFile(filepath.Join(n.path, "book", "lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	slow := &slowSegments{Spill: n.spill, lock: lock}
	book, err := agent.OpenBook(agent.BookConfig{
		Path: n.path, Group: -1, Instance: "slow", Role: "synth", Segments: slow,
		Capacity: func() (ledger.Amounts, error) { return n.capacity, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	n.seal(t, attempt(9, 0, 1))
	if err := n.spill.Reclaim(attempt(9, 0, 1)); err != nil {
		t.Fatal(err)
	}
	need := ledger.Amounts{ledger.PoolSHM: n.capacity[ledger.PoolSHM]}
	if _, err := book.Admit(ctx, agent.Request{Attempt: attempt(1, 0, 1), Amounts: need}); err != nil {
		t.Fatal(err)
	}
	if !slow.free {
		t.Error("memory was not freed, or the book was locked meanwhile")
	}
}
