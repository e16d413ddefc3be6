package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/job"
)

// terminal is a real one: a server of tmux that the test alone uses.
type terminal struct {
	t      *testing.T
	socket string
	seen   string
}

// startTerminal runs a command in a terminal of some size.
func startTerminal(t *testing.T, columns, lines string, command ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if testing.Short() {
			t.Skip("no tmux, and this is a short run")
		}
		t.Fatalf("tmux is needed (make servers): %v", err)
	}
	x := &terminal{t: t, socket: filepath.Join(shortFolder(t), "tmux")}
	t.Cleanup(func() { _ = x.tmux("kill-server").Run() })
	args := append([]string{"-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", lines}, command...)
	if out, err := x.tmux(args...).CombinedOutput(); err != nil {
		t.Fatalf("start terminal: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("terminal:\n%s", x.seen)
		}
	})
	return x
}

func (x *terminal) tmux(args ...string) *exec.Cmd {
	c := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...)
	c.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TERM=xterm-256color")
	return c
}

// shows waits until the screen has some texts.
func (x *terminal) shows(texts ...string) {
	x.t.Helper()
	until(x.t, "the terminal shows "+strings.Join(texts, ", "), func() bool {
		out, err := x.tmux("capture-pane", "-p").Output()
		if err != nil {
			return false
		}
		x.seen = string(out)
		for _, text := range texts {
			if !strings.Contains(x.seen, text) {
				return false
			}
		}
		return true
	})
}

// keys presses keys, by tmux's names.
func (x *terminal) keys(names ...string) {
	x.t.Helper()
	if out, err := x.tmux(append([]string{"send-keys"}, names...)...).CombinedOutput(); err != nil {
		x.t.Fatalf("press %v: %v\n%s", names, err, out)
	}
}

// An operator looks at a rack in a real terminal: sees nodes, devices and a job at work, opens it, drains a node and
// takes that back, and cancels the job. The screen follows when the coordinator goes and another one comes.
func TestOperatorFollowsTheRackInATerminal(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.calm()
	first := r.startCoordinator()
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU(r.hooked("pause@gpu.mid-proof#1")...)
	r.ready()
	program, err := buildProofrack()
	r.check(err)
	j := r.submit(1, 2, 3)
	r.reached("gpu.mid-proof#1") // the job can't end before the operator wants it to
	id := string(j.id)
	short := id[:8] + ".." + id[len(id)-4:]

	x := startTerminal(t, "120", "36", program, "top", "--server", r.nats.url())
	x.shows("proofrack", "n1", "cpu", "healthy", "> "+short, "active", "0/3", "BUFFERS", "as of ")
	x.keys("Enter")
	x.shows("JOB "+id, "0 of 3 partitions verified", "p proving")
	x.keys("Escape")
	x.shows("NODES", "> "+short)
	x.keys("?")
	x.shows("any key: back", "cancel the chosen job")
	x.keys("x", "Tab")
	x.shows("> n1", "of node n1")
	x.keys("d")
	x.shows("drain node n1? what runs there ends (y/n)")
	x.keys("y")
	x.shows("n1             draining")
	x.keys("d")
	x.shows("give node n1 work again? (y/n)")
	x.keys("y")
	x.shows("n1             ready")
	r.pictured(program)

	first.kill()
	x.shows("no answer about nodes", "n1", short)
	r.startCoordinator()
	x.shows("NODES  1 of 1 ready", "> n1")
	until(t, "the rack answers again", func() bool {
		x.shows("as of ")
		return !strings.Contains(x.seen, "no answer")
	})

	x.keys("Tab", "c")
	x.shows("cancel job " + short + " of main? (y/n)")
	x.keys("y")
	r.letGo("gpu.mid-proof#1")
	x.shows("> " + short + " cancelled")
	if record := r.waitEnd(j); record.State != job.Cancelled {
		t.Errorf("job is %s", record.State)
	}
	r.jobs = nil // it has no proofs to verify
	x.keys("q")
	until(t, "the program ends", func() bool { return x.tmux("has-session").Run() != nil })
}

// Who watches a job in a terminal sees a bar for each partition, and where it is.
func TestEachPartitionHasABarInATerminal(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.calm()
	r.startCoordinator()
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU(r.hooked("pause@gpu.mid-proof#1")...)
	r.ready()
	program, err := buildProofrack()
	r.check(err)
	j := r.submit(1, 2, 3)
	r.reached("gpu.mid-proof#1")
	x := startTerminal(t, "120", "12", program, "watch", string(j.id), "--server", r.nats.url())
	x.shows("0 of 3 proved", "partition 0 ", "partition 1 ", "partition 2 ", " proving on n1/cpu", " sealed on n1/cpu")
	r.letGo("gpu.mid-proof#1")
	r.waitDone()
	until(t, "the program ends", func() bool { return x.tmux("has-session").Run() != nil })
}

// pictured draws the rack as it is now, as a page of plain text and as a drawing.
func (r *rack) pictured(program string) {
	r.t.Helper()
	drawing := filepath.Join(pictures(r.t), "top.svg")
	out, err := exec.Command(program, "top", "--once", "--columns", "100", "--svg", drawing, "--server",
		r.nats.url()).CombinedOutput()
	if err != nil {
		r.t.Fatalf("top --once: %v\n%s", err, out)
	}
	for _, text := range []string{string(out), readText(drawing)} {
		for _, want := range []string{"proofrack", "n1", "healthy", "active"} {
			if !strings.Contains(text, want) {
				r.t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
}
