package handoff_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
)

// Settings of child processes of the tests.
const (
	envRole    = "HANDOFF_ROLE"
	envPath    = "HANDOFF_PATH"
	envDisk    = "HANDOFF_DISK"
	envAttempt = "HANDOFF_ATTEMPT"
	envBytes   = "HANDOFF_BYTES"
	envGroup   = "HANDOFF_GROUP"
	envHook    = "HANDOFF_HOOK"
	envHooks   = "HANDOFF_HOOKS"
	envMount   = "HANDOFF_MOUNT"
	envInside  = "HANDOFF_INSIDE"
)

func TestMain(m *testing.M) {
	if options := os.Getenv(envMount); options != "" {
		if err := unix.Mount("tmpfs", os.Getenv(envPath), "tmpfs", 0, options); err != nil {
			fmt.Fprintln(os.Stderr, "mount tmpfs:", err)
			os.Exit(9)
		}
	}
	if role := os.Getenv(envRole); role != "" {
		if err := playRole(role); err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// inTmpfs runs the calling test again in a process of its own, in a new user and mount namespace (recipe R1), with a
// tmpfs of the given mount options at the path that it returns there. In the parent it returns "" when that is over.
func inTmpfs(t *testing.T, options string) string {
	t.Helper()
	if os.Getenv(envInside) == t.Name() {
		return os.Getenv(envPath)
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	c.Env = append(os.Environ(), envInside+"="+t.Name(), envMount+"="+options, envPath+"="+t.TempDir())
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Fatalf("in a tmpfs with %s: %v\n%s", options, err, out)
	}
	return ""
}

// child starts this test binary in a role. Its environment is name, value, name, value …
func child(t *testing.T, role string, env ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), envRole+"="+role, envMount+"=", envInside+"=")
	for i := 0; i < len(env); i += 2 {
		c.Env = append(c.Env, env[i]+"="+env[i+1])
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	return c, &out
}

// playRole is what child processes do.
func playRole(role string) error {
	ctx := context.Background()
	a, err := job.ParseAttempt(os.Getenv(envAttempt))
	if err != nil {
		return err
	}
	size, err := strconv.ParseInt(os.Getenv(envBytes), 10, 64)
	if err != nil {
		return err
	}
	if role == "engine" {
		seg, err := handoff.FromFile(os.NewFile(3, "segment"), handoff.Want{Attempt: a, Circuit: circuitID})
		if err != nil {
			return err
		}
		return errors.Join(checkPattern(seg.Memory(), a), seg.Close())
	}
	config := handoff.NewConfig(os.Getenv(envPath))
	config.DiskPath = os.Getenv(envDisk)
	if text := os.Getenv(envGroup); text != "" {
		if config.Group, err = strconv.Atoi(text); err != nil {
			return err
		}
	}
	if text := os.Getenv(envHook); text != "" {
		if config.Points, err = hook.Parse(os.Getenv(envHooks), []string{text}); err != nil {
			return err
		}
	}
	s, err := handoff.New(config)
	if err != nil {
		return err
	}
	switch role {
	case "write":
		return write(ctx, s, a, size)
	case "read":
		seg, err := s.Open(ctx, handoff.Want{Attempt: a, Circuit: circuitID, Bytes: bytesize.Bytes(size)})
		if err != nil {
			return err
		}
		return errors.Join(checkPattern(seg.Memory(), a), seg.GiveBack())
	}
	return fmt.Errorf("no role %q", role)
}

// write makes one segment with a pattern that depends on the attempt.
func write(ctx context.Context, s *handoff.Spill, a job.Attempt, size int64) error {
	d, err := s.Create(ctx, handoff.Spec{Attempt: a, Circuit: circuitID, Bytes: bytesize.Bytes(size)})
	if err != nil {
		return err
	}
	fillPattern(d.Memory(), a)
	return errors.Join(d.Seal(ctx), d.Close())
}

const circuitID = "porep-test"

func pattern(a job.Attempt, i int) byte {
	return byte(i>>12) ^ byte(i) ^ byte(a.Partition*31) ^ byte(a.Fence*7)
}

func fillPattern(memory []byte, a job.Attempt) {
	for i := range memory {
		memory[i] = pattern(a, i)
	}
}

func checkPattern(memory []byte, a job.Attempt) error {
	if len(memory) == 0 {
		return errors.New("no memory")
	}
	for i, b := range memory {
		if b != pattern(a, i) {
			return fmt.Errorf("byte %d of the body of %s differs", i, a)
		}
	}
	return nil
}

// attempt is a name made of small numbers.
func attempt(n, partition int, fence uint64) job.Attempt {
	return job.Attempt{
		Job: job.ID(fmt.Sprintf("01900000-0000-7000-8000-%012x", n)), Partition: partition, Fence: fence,
	}
}

// memoryFolder is a folder of the test's own on a tmpfs.
func memoryFolder(t testing.TB) string {
	t.Helper()
	path, err := os.MkdirTemp("/dev/shm", "handoff-test-")
	if err != nil {
		t.Fatalf("tests need a writable /dev/shm: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	})
	return path
}

func newSpill(t testing.TB, path string, change ...func(*handoff.Config)) *handoff.Spill {
	t.Helper()
	config := handoff.NewConfig(path)
	for _, c := range change {
		c(&config)
	}
	s, err := handoff.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustWrite(t testing.TB, s *handoff.Spill, a job.Attempt, size int64) {
	t.Helper()
	if err := write(t.Context(), s, a, size); err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t testing.TB, s *handoff.Spill, a job.Attempt) *handoff.Segment {
	t.Helper()
	seg, err := s.Open(t.Context(), handoff.Want{Attempt: a, Circuit: circuitID})
	if err != nil {
		t.Fatal(err)
	}
	return seg
}

func mustSweep(t testing.TB, s *handoff.Spill, wanted ...job.Attempt) handoff.SweepReport {
	t.Helper()
	report, err := s.Sweep(t.Context(), func(a job.Attempt) bool {
		for _, w := range wanted {
			if a == w {
				return true
			}
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// files lists a folder of the spill folder.
func files(t testing.TB, path, sub string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(path, sub))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// usedBytes is what a whole file system holds.
func usedBytes(t testing.TB, path string) int64 {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		t.Fatal(err)
	}
	return int64(s.Blocks-s.Bfree) * s.Bsize
}

// waitReached waits until a child has reached a hook point.
func waitReached(t *testing.T, folder, point string) {
	t.Helper()
	limit := time.Now().Add(time.Minute)
	for {
		if _, ok := hook.ReachedBy(folder, point); ok {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("point %s was not reached", point)
		}
		time.Sleep(time.Millisecond)
	}
}

// diedBySignal fails unless a command was ended by a SIGKILL of its own.
func diedBySignal(t *testing.T, err error, out io.Reader) {
	t.Helper()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		text := new(strings.Builder)
		_, _ = io.Copy(text, out)
		t.Fatalf("child ended with %v: %s", err, text)
	}
}

func contextEndingSoon(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), 10*time.Millisecond)
}
