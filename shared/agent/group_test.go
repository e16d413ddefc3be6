package agent_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/proofrack/proofrack/shared/agent"
)

// TestB88BookOfAGroup: synthesis and proof run as different users of one group; others cannot even read the book.
func TestB88BookOfAGroup(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs root, to become other users")
	}
	if os.Getuid() != 0 {
		t.Fatal("needs root, to become other users; -short leaves it out")
	}
	base, err := os.MkdirTemp("/dev/shm", "agent-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	binary, content := filepath.Join(base, "agent.test"), []byte(nil)
	if content, err = os.ReadFile(os.Args[0]); err == nil {
		syscall.ForkLock.RLock() // a child that is forked meanwhile would keep the file open for writing: "text file busy"
		err = os.WriteFile(binary, content, 0o755)
		syscall.ForkLock.RUnlock()
		err = errors.Join(err, os.Chmod(base, os.ModeSticky|0o777))
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(base, "spill")
	as := func(uid, gid uint32, role, instance string) error {
		c := exec.Command(binary)
		c.Dir = "/"
		c.Env = append(os.Environ(), envRole+"="+role, envPath+"="+path, envInstance+"="+instance, envNumber+"=1",
			envGroup+"=1002")
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid, Groups: []uint32{}}}
		out, err := c.CombinedOutput()
		if err != nil {
			return errors.New(err.Error() + ": " + string(out))
		}
		return nil
	}
	for round, users := range [][2]uint32{{1000, 1001}, {1001, 1000}, {1000, 1000}} {
		if err := as(users[0], 1002, "hand-over", "synth"); err != nil {
			t.Fatalf("round %d: hand over: %v", round, err)
		}
		info, err := os.Stat(filepath.Join(path, "book", attempt(1, 0, 1).String()))
		if err != nil || info.Mode() != 0o640 {
			t.Errorf("round %d: mode %v, %v", round, info.Mode(), err)
		}
		if err := as(1003, 1003, "take", "stranger"); err == nil {
			t.Errorf("round %d: a stranger took it", round)
		}
		if err := as(users[1], 1002, "take", "gpu"); err != nil {
			t.Fatalf("round %d: take: %v", round, err)
		}
	}
	if lock, err := agent.TryHostLock(path, 1002); lock == nil || err != nil {
		t.Errorf("host lock: %v", err)
	} else if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
}
