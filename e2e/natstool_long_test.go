//go:build long

package e2e_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
	"github.com/proofrack/proofrack/shared/wire"
)

// Names that the manual's examples use.
const (
	exampleJob       = "01890a5d-ac96-774b-bcce-b302099a8057"
	exampleCancelled = "01890a5d-ac96-774b-bcce-b302099a8058"
	exampleFailed    = "01890a5d-ac96-774b-bcce-b302099a8059"
	exampleNode      = "node-7"
	exampleDevice    = `"gpu0"`
)

// natsManual gives the commands of the manual's section on the plain nats tool, and the subjects that its tables name.
func natsManual(t *testing.T) (blocks, subjects []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/rack.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Clients, with the plain `nats` tool\n")
	if !ok {
		t.Fatal("the manual has no section on the nats tool")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var block []string
	for line := range strings.Lines(section + "\n\n") {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			block = append(block, command)
			continue
		}
		if len(block) > 0 && !strings.HasPrefix(block[0], "{") { // an answer
			blocks = append(blocks, strings.Join(block, ""))
		}
		block = nil
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(c2\\.[a-z.]+)(<tenant>)?` \\|").FindAllStringSubmatch(section, -1) {
		subjects = append(subjects, m[1])
	}
	return blocks, subjects
}

// natsTool is a shell with the plain nats tool, in a folder of its own.
type natsTool struct {
	*rack

	folder string
	names  map[string]string // the manual's and ours
}

// newNATSTool builds the tool from the version that tools/nats pins.
func newNATSTool(r *rack) *natsTool {
	r.t.Helper()
	bin := filepath.Join(r.t.TempDir(), "bin")
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "nats"), "github.com/nats-io/natscli/nats")
	build.Dir, build.Env = "../tools/nats", append(os.Environ(), "GOWORK=off")
	begun := time.Now()
	if out, err := build.CombinedOutput(); err != nil {
		r.t.Fatalf("build the nats tool: %v\n%s", err, out)
	}
	r.t.Logf("the nats tool was built in %s", time.Since(begun).Round(time.Second))
	r.t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	r.t.Setenv("NATS_URL", r.nats.url())
	r.t.Setenv("XDG_CONFIG_HOME", r.t.TempDir())
	return &natsTool{rack: r, folder: r.t.TempDir(), names: map[string]string{}}
}

// ours puts our names in place of the manual's.
func (n *natsTool) ours(script string) string {
	for theirs, ours := range n.names {
		script = strings.ReplaceAll(script, theirs, ours)
	}
	return script
}

// run runs a script of the manual and gives what it prints. No answer in it may be a refusal.
func (n *natsTool) run(script string) string {
	n.t.Helper()
	script = n.ours(script)
	n.t.Logf("$ %s", script)
	command := exec.CommandContext(n.t.Context(), "bash", "-euo", "pipefail", "-c", script)
	command.Dir = n.folder
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		n.t.Fatalf("%v\n%s%s", err, out, &stderr)
	}
	n.t.Logf("%s", out[:min(len(out), 2000)])
	for line := range strings.Lines(string(out)) {
		var reply wire.Reply
		if strings.HasPrefix(line, `{"v":`) && json.Unmarshal([]byte(line), &reply) == nil && reply.Fault != nil {
			// An event of a failed job has a fault, too, but no job of the manual's fails; no device is in quarantine, and no
			// node is gone.
			if !strings.Contains(reply.Fault.Message, "is not in quarantine") && reply.Fault.Kind != fault.NotFound {
				n.t.Errorf("refused: %s", line)
			}
		}
	}
	return string(out)
}

// endless takes the commands out of a script that do not end by themselves.
func endless(script string) (ends string, others []string) {
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "nats sub ") && !strings.Contains(line, "--terminate-at-end") {
			others = append(others, line)
		} else {
			ends += line
		}
	}
	return ends, others
}

// The manual's commands for the plain nats tool are run as they stand there, with a real sector.
func TestLongManualOfThePlainNATSTool(t *testing.T) {
	r := newRack(t)
	r.params = t.TempDir()
	c1, input := r.real("2KiB-v1_1")
	c := input.Circuit()
	_, err := generate.ToFolder(t.Context(), r.params, c, generate.FromSeed("e2e", c.ID()), generate.Options{})
	r.check(err)
	r.circuits = c.ID()
	r.startCoordinator("times.heartbeat=2s", "times.lease=15s")
	tool := newNATSTool(r)
	r.check(os.WriteFile(filepath.Join(tool.folder, "c1.json"), c1, 0o600))
	blocks, subjects := natsManual(t)
	var watchers []*process
	for i, block := range blocks {
		var others []string
		blocks[i], others = endless(block)
		for _, other := range others {
			watchers = append(watchers, start(t, "nats sub", "bash", "-c", "exec "+other))
		}
	}
	if len(watchers) != 1 {
		t.Fatalf("%d commands of the manual do not end", len(watchers))
	}
	until(t, "the watcher subscribes", func() bool { return strings.Contains(watchers[0].log.String(), "Subscribing") })
	tool.prepare(c1)
	for _, block := range blocks {
		switch {
		case strings.Contains(block, "c2.submit."):
			tool.submitted(tool.run(block), input)
			continue
		case strings.Contains(block, "c2.cancel."):
			tool.names[exampleCancelled] = string(tool.another(c1, "to be cancelled", nil))
		case strings.Contains(block, "proof.bin"):
			untilWithin(t, 5*time.Minute, "the proof is there", func() bool { return r.record(r.jobs[0]).State.Ended() })
		}
		tool.run(block)
	}
	tool.checkAfter(subjects, blocks, watchers[0], input)
}

// prepare makes a job that fails, since no node is there before its deadline, and starts a node.
func (n *natsTool) prepare(c1 []byte) {
	n.t.Helper()
	soon := time.Now().Add(2 * time.Second)
	failed := n.another(c1, "to be failed", &soon)
	until(n.t, "a job fails", func() bool { return n.record(&submitted{id: failed}).State == job.Failed })
	n.names[exampleFailed] = string(failed)
	n.names[exampleNode], n.names[exampleDevice] = "n1", `"cpu"`
	slow := []string{"worker.heartbeat=2s", "worker.ack_wait=30s", "worker.keep_every=10s", "worker.stall_max=2m"}
	node := n.addNode("n1")
	node.startSynth(append([]string{"synth.scratch_bytes=96MiB"}, slow...)...)
	node.startGPU(append([]string{"engine.stall_max=1m", "engine.start_max=1m"}, slow...)...)
	untilWithin(n.t, 3*time.Minute, "the node is ready", func() bool {
		v := n.view()
		return v != nil && v.Ready
	})
}

// another submits the sector under another key.
func (n *natsTool) another(c1 []byte, key string, deadline *time.Time) job.ID {
	n.t.Helper()
	number := uint64(4243)
	s, err := n.client.Submit(n.t.Context(), client.Request{
		Key: key, Miner: "f01000", SectorNumber: &number, Input: bytes.NewReader(c1), WaitForNode: true, Deadline: deadline,
	})
	n.check(err)
	return s.Job
}

// submitted takes the job's id from an answer. Every submit of the manual is of one sector, so of one job.
func (n *natsTool) submitted(out string, input circuit.Input) {
	n.t.Helper()
	at := strings.Index(out, `{"v":`)
	var reply wire.SubmitReply
	if at < 0 || json.NewDecoder(strings.NewReader(out[at:])).Decode(&reply) != nil || reply.Job == "" {
		n.t.Fatalf("no job in the answer %q", out)
	}
	if known := n.names[exampleJob]; known != "" && (known != string(reply.Job) || !reply.Existing) {
		n.t.Errorf("the sector's job is %s, then %s", known, reply.Job)
	} else if known == "" {
		public, err := input.PublicInputs(0)
		n.check(err)
		j := &submitted{id: reply.Job, circuit: input.Circuit()}
		j.public = append(j.public, public)
		n.jobs = append(n.jobs, j)
	}
	n.names[exampleJob] = string(reply.Job)
}

// checkAfter holds what is left against what the manual says.
func (n *natsTool) checkAfter(subjects, blocks []string, watcher *process, input circuit.Input) {
	n.t.Helper()
	if len(subjects) < 13 {
		n.t.Errorf("the manual's tables have the subjects %v only", subjects)
	}
	for _, subject := range subjects {
		if !strings.Contains(strings.Join(blocks, ""), subject) {
			n.t.Errorf("the manual has no command for %s", subject)
		}
	}
	proof, err := os.ReadFile(filepath.Join(n.folder, "proof.bin"))
	n.check(err)
	p, err := groth16.ParseProof(proof)
	n.check(err)
	n.check(n.verifyingKey(input.Circuit()).Verify(n.jobs[0].public[0], p))
	for _, event := range []string{
		n.names[exampleJob] + ".done", n.names[exampleCancelled] + ".cancelled", n.names[exampleFailed] + ".failed",
	} {
		if !strings.Contains(watcher.log.String(), event) {
			n.t.Errorf("the watcher did not see %s", event)
		}
	}
	record := n.waitEnd(&submitted{id: job.ID(n.names[exampleCancelled])})
	if record.State != job.Cancelled {
		n.t.Errorf("the cancelled job is %s", record.State)
	}
}
