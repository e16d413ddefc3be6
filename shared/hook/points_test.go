package hook_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/hook"
)

func TestMain(m *testing.M) {
	if entry := os.Getenv("HOOK_CHILD"); entry != "" {
		child(os.Getenv("HOOK_FOLDER"), entry)
	}
	os.Exit(m.Run())
}

// child comes by the point three times and ends well.
func child(folder, entry string) {
	points, err := hook.Parse(folder, []string{entry})
	if err != nil {
		os.Exit(3)
	}
	for range 3 {
		points.Hit(context.Background(), "a.point")
	}
	os.Exit(0)
}

func start(t *testing.T, folder, entry string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "HOOK_CHILD="+entry, "HOOK_FOLDER="+folder)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPointsThatAreNotSetDoNothing(t *testing.T) {
	t.Parallel()
	var none *hook.Points
	none.Hit(t.Context(), "a.point")
	if got := none.Unreached(); got != nil {
		t.Errorf("unreached entries of nothing: %v", got)
	}
	got, err := hook.Parse("/nowhere", nil)
	if got != nil || err != nil {
		t.Errorf("no entries give %v, %v", got, err)
	}
}

func TestParseRefusesWhatIsNoEntry(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, text := range []string{
		"", "kill", "kill@", "kill@a#0", "kill@a#-1", "kill@a#x", "kill@../a", "stop@a", "kill@A", "kill@a#1000000",
	} {
		if _, err := hook.Parse(folder, []string{text}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := hook.Parse(filepath.Join(folder, "none"), []string{"kill@a"}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("absent folder: %v", err)
	}
	if _, err := hook.Parse(folder, make([]string, hook.EntriesMax+1)); fault.KindOf(err) != fault.Invalid {
		t.Errorf("too many: %v", err)
	}
}

func TestMarkTellsThatThePointWasReached(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	points, err := hook.Parse(folder, []string{"mark@a.point#2", "mark@never"})
	if err != nil {
		t.Fatal(err)
	}
	points.Hit(t.Context(), "a.point")
	if diff := cmp.Diff([]string{"mark@a.point#2", "mark@never#1"}, points.Unreached()); diff != "" {
		t.Error(diff)
	}
	points.Hit(t.Context(), "a.point")
	if pid, ok := hook.ReachedBy(folder, "a.point#2"); !ok || pid != os.Getpid() {
		t.Errorf("reached by %d, %v", pid, ok)
	}
	if diff := cmp.Diff([]string{"mark@never#1"}, points.Unreached()); diff != "" {
		t.Error(diff)
	}
}

func TestKillFiresOnceAcrossRestarts(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first := start(t, folder, "kill@a.point#2")
	var ended *exec.ExitError
	if err := first.Wait(); !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("first process ended with %v", err)
	}
	if pid, ok := hook.ReachedBy(folder, "a.point#2"); !ok || pid != first.Process.Pid {
		t.Errorf("reached by %d, %v; child was %d", pid, ok, first.Process.Pid)
	}
	if err := start(t, folder, "kill@a.point#2").Wait(); err != nil {
		t.Errorf("second process: %v", err)
	}
}

func TestPauseLastsUntilLetGo(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := start(t, folder, "pause@a.point")
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	limit := time.After(time.Minute)
	for {
		if _, ok := hook.ReachedBy(folder, "a.point#1"); ok {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("ended without a pause: %v", err)
		case <-limit:
			t.Fatal("point not reached")
		case <-time.After(time.Millisecond):
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := hook.LetGo(folder, "a.point#1"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := hook.LetGo(folder, "a.point#1"); err == nil {
		t.Error("let go twice")
	}
}

func TestPauseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	points, err := hook.Parse(t.TempDir(), []string{"pause@a"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	points.Hit(ctx, "a")
}

func TestLeakIsToldOncePerFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	points, err := hook.Parse(folder, []string{"leak@a.buffer#2", "mark@a.buffer#3"})
	if err != nil {
		t.Fatal(err)
	}
	var got []bool
	for range 4 {
		got = append(got, points.Leak("a.buffer"))
	}
	again, err := hook.Parse(folder, []string{"leak@a.buffer#1", "leak@a.buffer#2"})
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, again.Leak("a.buffer"), again.Leak("a.buffer"))
	if diff := cmp.Diff([]bool{false, true, false, false, true, false}, got); diff != "" {
		t.Error(diff)
	}
	var none *hook.Points
	if none.Leak("a.buffer") {
		t.Error("nothing leaks")
	}
}
