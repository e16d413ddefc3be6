package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

const envInside = "AGENT_INSIDE"

// inTmpfs runs the calling test again in a process of its own, in a new user and mount namespace (recipe R1), with a
// tmpfs at the path that it returns there. In the parent it returns "" when that is over.
func inTmpfs(t *testing.T, options string) string {
	t.Helper()
	if path := os.Getenv(envInside); path != "" {
		if err := unix.Mount("tmpfs", path, "tmpfs", 0, options); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	c.Env = append(os.Environ(), envInside+"="+t.TempDir())
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("in a tmpfs with %s: %v\n%s", options, err, out)
	}
	return ""
}

// TestB82BookInAFullFolder: a foreign file fills the tmpfs. Nothing new is booked, and that is a clear refusal; what is
// booked stays, goes on and is removed; with room again all works.
func TestB82BookInAFullFolder(t *testing.T) {
	t.Parallel()
	path := inTmpfs(t, "size=1m")
	if path == "" {
		return
	}
	foreign := filepath.Join(path, "of-somebody-else")
	book, err := agent.OpenBook(agent.BookConfig{
		Path: path, Group: -1, Instance: "here", Role: "synth",
		Capacity: func() (ledger.Amounts, error) { return capacity(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	n, ctx := &node{path: path, book: book}, t.Context()
	held := n.mustAdmit(t, attempt(1, 0, 1), gib(1))
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(foreign, make([]byte, int64(stat.Bfree)*stat.Bsize), 0o600); err != nil {
		t.Fatal(err)
	}
	request := agent.Request{Attempt: attempt(1, 1, 1), Amounts: gib(1)}
	if _, err := book.Admit(ctx, request); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("booked in a full folder: %v", err)
	}
	if book.Booked(request.Attempt) {
		t.Error("the refusal left a booking")
	}
	if err := held.SetStage(ctx, job.Synthesizing); err != nil {
		t.Errorf("stage: %v", err)
	}
	if err := held.Shrink(ctx, gib(1)); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("shrink: %v", err)
	}
	if got := held.Booking().Amounts[ledger.PoolRAM]; got != gib(1)[ledger.PoolRAM] {
		t.Errorf("after a failed shrink %s", got)
	}
	other, err := agent.OpenBook(agent.BookConfig{
		Path: path, Group: -1, Instance: "other", Role: "gpu",
		Capacity: func() (ledger.Amounts, error) { return capacity(), nil },
	})
	if err != nil {
		t.Fatalf("open in a full folder: %v", err)
	}
	defer other.Close()
	if m, err := other.Mend(ctx, nil); err != nil || m.Changed() {
		t.Errorf("mended %+v, %v", m, err)
	}
	if err := held.Remove(ctx); err != nil || book.Booked(attempt(1, 0, 1)) {
		t.Errorf("remove: %v", err)
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Admit(ctx, request); err != nil {
		t.Errorf("with room again: %v", err)
	}
}
