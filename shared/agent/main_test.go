package agent_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Settings of child processes of the tests.
const (
	envRole     = "AGENT_ROLE"
	envPath     = "AGENT_PATH"
	envInstance = "AGENT_INSTANCE"
	envNumber   = "AGENT_NUMBER"
	envGroup    = "AGENT_GROUP"
)

const circuitID = "toy"

func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		if err := playRole(role); err != nil {
			fmt.Println("error:", err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// gib is an amount of RAM in GiB.
func gib(n int64) ledger.Amounts {
	return ledger.Amounts{ledger.PoolRAM: bytesize.Bytes(n) * bytesize.GiB}
}

// attempt is a name made of small numbers.
func attempt(n, partition int, fence uint64) job.Attempt {
	return job.Attempt{
		Job: job.ID(fmt.Sprintf("01900000-0000-7000-8000-%012x", n)), Partition: partition, Fence: fence,
	}
}

func capacity() ledger.Amounts {
	return ledger.Amounts{
		ledger.PoolRAM: 40 * bytesize.GiB, ledger.PoolSHM: 4 * bytesize.MiB, ledger.PoolDisk: 8 * bytesize.GiB,
		ledger.PoolVRAM("gpu0"): 16 * bytesize.GiB,
	}
}

// playRole is what child processes do. They print "ready" and go on until their input ends, or until they are killed.
func playRole(role string) error {
	ctx, path := context.Background(), os.Getenv(envPath)
	n, err := strconv.Atoi(os.Getenv(envNumber))
	if err != nil {
		return err
	}
	if role == "lock" {
		lock, err := agent.TryHostLock(path, -1)
		if err != nil || lock == nil {
			return fmt.Errorf("lock: %v, %w", lock, err)
		}
		return untilInputEnds()
	}
	if role == "meter" {
		return playMeter(path, n)
	}
	if role == "engine" { // it only inherits a file
		return untilInputEnds()
	}
	config := handoff.NewConfig(path)
	if text := os.Getenv(envGroup); text != "" {
		if config.Group, err = strconv.Atoi(text); err != nil {
			return err
		}
	}
	spill, err := handoff.New(config)
	if err != nil {
		return err
	}
	book, err := agent.OpenBook(agent.BookConfig{
		Path: path, Group: config.Group, Instance: os.Getenv(envInstance), Role: "synth", Segments: spill,
		Capacity: func() (ledger.Amounts, error) {
			if role == "roam" {
				return roamCapacity(spill), nil
			}
			return capacity(), nil
		},
	})
	if err != nil {
		return err
	}
	if role == "roam" {
		return roamForEver(ctx, book, spill, n)
	}
	if role == "compete" {
		return compete(ctx, book, n)
	}
	if role == "take" {
		held, err := book.Take(ctx, attempt(n, 0, 1))
		if err != nil {
			return err
		}
		return errors.Join(held.SetStage(ctx, job.Proving), spill.Reclaim(attempt(n, 0, 1)), held.Remove(ctx))
	}
	held, err := book.Admit(ctx, agent.Request{Attempt: attempt(n, 0, 1), Circuit: circuitID, Amounts: gib(2)})
	if err != nil {
		return err
	}
	return hold(ctx, role, n, held, book, spill)
}

// hold is what a child does once it has a booking.
func hold(
	ctx context.Context, role string, n int, held *agent.Held, book *agent.Book, spill *handoff.Spill,
) error {
	switch role {
	case "hold":
		return untilInputEnds()
	case "churn":
		fmt.Println("ready")
		for i := 0; ; i++ {
			if err := held.SetStage(ctx, []job.Stage{job.Reserved, job.Synthesizing}[i%2]); err != nil {
				return err
			}
		}
	case "seal", "write", "hand-over":
		d, err := spill.Create(ctx, handoff.Spec{Attempt: attempt(n, 0, 1), Circuit: circuitID, Bytes: 10_000})
		if err != nil {
			return err
		}
		if role != "write" {
			if err := errors.Join(d.Seal(ctx), d.Close()); err != nil {
				return err
			}
		}
		if role == "hand-over" {
			return held.HandOver(ctx)
		}
		return untilInputEnds()
	case "with-engine":
		engine := exec.Command(os.Args[0])
		engine.Env = append(os.Environ(), envRole+"=engine")
		engine.Stdin, engine.ExtraFiles = os.Stdin, []*os.File{book.Evidence()}
		if err := engine.Start(); err != nil {
			return err
		}
		fmt.Println("engine", engine.Process.Pid)
		return untilInputEnds()
	}
	return fmt.Errorf("no role %q", role)
}

// compete books as many attempts of 1 GiB as it can and prints how many.
func compete(ctx context.Context, book *agent.Book, n int) error {
	count := 0
	for i := range 40 {
		_, err := book.Admit(ctx, agent.Request{Attempt: attempt(n, i, 1), Amounts: gib(1)})
		switch {
		case err == nil:
			count++
		case fault.KindOf(err) != fault.Exhausted:
			return err
		}
	}
	fmt.Println("booked", count)
	return untilInputEnds()
}

func untilInputEnds() error {
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// worker is a child process.
type worker struct {
	*exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// start runs a child in a role.
func start(t *testing.T, role, path, instance string, n int) *worker {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), envRole+"="+role, envPath+"="+path, envInstance+"="+instance,
		envNumber+"="+strconv.Itoa(n))
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w := &worker{Cmd: c, in: in, lines: bufio.NewScanner(out)}
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return w
}

// until reads the child's lines until one starts with a word and gives the rest of it.
func (w *worker) until(t *testing.T, word string) string {
	t.Helper()
	for w.lines.Scan() {
		if rest, ok := strings.CutPrefix(w.lines.Text(), word); ok {
			return strings.TrimSpace(rest)
		}
		if strings.HasPrefix(w.lines.Text(), "error:") {
			t.Fatal(w.lines.Text())
		}
	}
	t.Fatalf("child ended before it said %q", word)
	return ""
}

// kill ends a child at once and waits until it is gone.
func (w *worker) kill(t *testing.T) {
	t.Helper()
	if err := w.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = w.Wait()
}

// node is a spill folder with one open book.
type node struct {
	path     string
	spill    *handoff.Spill
	book     *agent.Book
	capacity ledger.Amounts
}

func newNode(t testing.TB) *node {
	t.Helper()
	path, err := os.MkdirTemp("/dev/shm", "agent-test-")
	if err != nil {
		t.Fatalf("tests need a writable /dev/shm: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	config := handoff.NewConfig(path)
	config.PoolIdle = time.Hour
	spill, err := handoff.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = spill.Close() })
	n := &node{path: path, spill: spill, capacity: capacity()}
	n.book = n.open(t, "here", "gpu")
	return n
}

// open opens the book once more, as another worker.
func (n *node) open(t testing.TB, instance, role string) *agent.Book {
	t.Helper()
	book, err := agent.OpenBook(agent.BookConfig{
		Path: n.path, Group: -1, Instance: instance, Role: role, Segments: n.spill,
		Capacity: func() (ledger.Amounts, error) { return n.capacity, nil }, LockWait: 20 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = book.Close() })
	return book
}

// seal makes the sealed segment of an attempt.
func (n *node) seal(t testing.TB, a job.Attempt) {
	t.Helper()
	d, err := n.spill.Create(t.Context(), handoff.Spec{Attempt: a, Circuit: circuitID, Bytes: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Seal(t.Context()), d.Close()); err != nil {
		t.Fatal(err)
	}
}

// alive lists the booked attempts with whether they are alive.
func (n *node) alive(t testing.TB) map[job.Attempt]bool {
	t.Helper()
	l, err := n.book.List(t.Context())
	if err != nil || !l.Complete {
		t.Fatalf("list: complete %v, %v", l.Complete, err)
	}
	m := map[job.Attempt]bool{}
	for _, e := range l.Entries {
		m[e.Attempt] = e.Alive
	}
	return m
}

func (n *node) mustAdmit(t testing.TB, a job.Attempt, amounts ledger.Amounts) *agent.Held {
	t.Helper()
	held, err := n.book.Admit(t.Context(), agent.Request{Attempt: a, Circuit: circuitID, Amounts: amounts})
	if err != nil {
		t.Fatal(err)
	}
	return held
}
