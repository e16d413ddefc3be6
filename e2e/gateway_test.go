package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/toy"
)

// buildProofrack builds the program proofrack, once for all tests that want it as a gateway.
var buildProofrack = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // as the other programs
	path := filepath.Join(built.folder, "proofrack-gateway")
	return path, buildProgram(path, "cli", "toy")
})

// shortFolder is a folder with a name that is short enough for sockets.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "gw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

// startGateway starts a gateway for toy inputs and gives its address.
func (r *rack) startGateway(settings ...string) (p *process, target string) {
	r.t.Helper()
	program, err := buildProofrack()
	r.check(err)
	target = "unix://" + filepath.Join(shortFolder(r.t), "s")
	return start(r.t, "gateway", append([]string{program, "gateway"}, flags(shared(), []string{
		"nats.urls=" + r.nats.url(), "gateway.listen=" + target, "test.kind=toy",
	}, settings)...)...), target
}

// sealed is a PoRep request of a made-up sector. Its seed makes its input.
func sealed(id string, sector int, seeds ...uint64) []field {
	var input []byte
	for _, seed := range seeds {
		input = append(input, toy.Slice(seed)...)
	}
	return []field{{1, id}, {2, kindPoRep}, {5, 2}, {10, input}, {20, sector}, {21, 1000}}
}

// accept notes a job that was made through the gateway, so that its proof is verified and its traces are looked for.
func (r *rack) accept(id []byte, seeds ...uint64) *submitted {
	r.t.Helper()
	for _, j := range r.jobs {
		if string(j.id) == string(id) {
			return j
		}
	}
	parsed, err := job.ParseID(string(id))
	r.check(err)
	return r.accepted(parsed, seeds...)
}

// A client whose requests are bytes made by hand has its proofs made: the rack's and the upstream's.
func TestGatewayServesAClientMadeByHand(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	up := startOtherProver(t)
	r.startCoordinator("attempts.failed_max=1", "schedule.quarantine_after=10")
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU(r.hooked("pause@gpu.mid-proof")...)
	r.ready()
	r.startCoordinator("attempts.failed_max=1", "schedule.quarantine_after=10")
	gateway, target := r.startGateway("forward.to=" + up.target)
	c := newCurio(t, target)

	r.failOver(c)
	r.seeds(c)
	r.failAndSendAgain(c, n)
	r.cancelOne(c, n)
	r.large(c)
	forwarded(c, up)

	status, err := read(c.must("GetStatus").texts[3])
	r.check(err)
	if status.numbers[2] != 0 || status.numbers[3] != 0 {
		t.Errorf("the queue is empty, the gateway says %v", status.numbers)
	}
	if len(r.jobs) != 7 {
		t.Errorf("%d jobs", len(r.jobs))
	}
	if log := gateway.log.String(); strings.Contains(log, "NOTHING IS FORWARDED") || !strings.Contains(log, up.target) {
		t.Error("the log is wrong about what is forwarded")
	}
	r.checkQuiet()
}

// failOver kills the leading coordinator while a client waits in Prove.
func (r *rack) failOver(c *curio) {
	r.t.Helper()
	answer := make(chan error, 1)
	var result message
	go func() {
		m, err := c.call("Prove", field{1, sealed("porep-1000-1", 1, 11, 12)})
		result = m
		answer <- err
	}()
	r.reached("gpu.mid-proof#1")
	r.coordinators[0].kill()
	queue, err := read(c.must("GetStatus").texts[3])
	r.check(err)
	if string(queue.texts[1]) != "POREP_SEAL_COMMIT" || queue.numbers[2] != 0 || queue.numbers[3] != 1 {
		r.t.Errorf("one job runs, the gateway says %q %v", queue.texts[1], queue.numbers)
	}
	r.letGo("gpu.mid-proof#1")
	r.check(<-answer)
	result = c.proved(result)
	j := r.accept(result.texts[1], 11, 12)
	r.waitDone(j)
	if !bytes.Equal(result.texts[3], r.proof(j)) || result.numbers[2] != statusCompleted {
		r.t.Errorf("status %d, %d bytes: not the proof", result.numbers[2], len(result.texts[3]))
	}
	if total := result.numbers[14]; total == 0 || result.numbers[12] > total {
		r.t.Errorf("times %v", result.numbers)
	}
}

// proof is a job's, as its record has it.
func (r *rack) proof(j *submitted) []byte {
	r.t.Helper()
	var proof []byte
	for _, p := range r.record(j).Partitions {
		proof = append(proof, p.Proof...)
	}
	return proof
}

// seeds sends a request again, under the same name with another seed, and as somebody's who bought the proof.
func (r *rack) seeds(c *curio) {
	r.t.Helper()
	again := c.must("SubmitProof", sealed("porep-1000-1", 1, 11, 12)...)
	if string(again.texts[1]) != string(r.jobs[0].id) {
		r.t.Error("a request that is sent again gets another job")
	}
	for id, seed := range map[string]uint64{"porep-1000-1": 13, "ps-porep-1000-1-77": 11} {
		result := c.proved(c.must("Prove", field{1, sealed(id, 1, seed)}))
		if string(result.texts[1]) == string(r.jobs[0].id) || result.numbers[2] != statusCompleted {
			r.t.Errorf("%s with another seed: %q, %v", id, result.texts[1], result.numbers)
		}
		j := r.accept(result.texts[1], seed)
		if !bytes.Equal(result.texts[3], r.proof(j)) {
			r.t.Errorf("%s: not the proof", id)
		}
	}
}

// failAndSendAgain has a job fail; the next try of the same request is another job, which is done.
func (r *rack) failAndSendAgain(c *curio, n *node) {
	r.t.Helper()
	n.gpu.kill()
	n.startGPU(`simulate={cpu='{"failures":["error@start#1"]}'}`, "engine.faults_max=100", "engine.pause_max=100ms")
	r.ready()
	request := sealed("porep-1000-2", 2, 21)
	failed := c.proved(c.must("Prove", field{1, request}))
	if failed.numbers[2] != statusFailed || len(failed.texts[4]) == 0 || len(failed.texts[3]) != 0 {
		r.t.Errorf("status %d: %q", failed.numbers[2], failed.texts[4])
	}
	r.accept(failed.texts[1], 21)
	done := c.proved(c.must("Prove", field{1, request}))
	j := r.accept(done.texts[1], 21)
	if done.numbers[2] != statusCompleted || bytes.Equal(done.texts[1], failed.texts[1]) ||
		!bytes.Equal(done.texts[3], r.proof(j)) {
		r.t.Errorf("after a failure: status %d, %q", done.numbers[2], done.texts[4])
	}
	before := c.must("AwaitProof", field{1, failed.texts[1]})
	if before.numbers[2] != statusFailed {
		r.t.Errorf("the failed job is %d now", before.numbers[2])
	}
}

// cancelOne submits, waits for less than it takes, and cancels.
func (r *rack) cancelOne(c *curio, n *node) {
	r.t.Helper()
	n.synth.signal(syscall.SIGSTOP)
	id := c.must("SubmitProof", sealed("porep-1000-3", 3, 31)...).texts[1]
	waited := c.must("AwaitProof", field{1, id}, field{2, 50})
	if waited.numbers[2] != statusTimeout || !bytes.Equal(waited.texts[1], id) {
		r.t.Errorf("status %d, want a time-out", waited.numbers[2])
	}
	c.must("CancelProof", field{1, id})
	n.synth.signal(syscall.SIGCONT)
	if ended := c.must("AwaitProof", field{1, id}); ended.numbers[2] != statusCancelled || len(ended.texts[4]) == 0 {
		r.t.Errorf("status %d, want cancelled", ended.numbers[2])
	}
	r.accept(id, 31)
}

// large sends a message of 60 MB.
func (r *rack) large(c *curio) {
	r.t.Helper()
	request := append(sealed("porep-1000-4", 4, 41), field{22, make([]byte, 60_000_000)})
	result := c.proved(c.must("Prove", field{1, request}))
	j := r.accept(result.texts[1], 41)
	if !bytes.Equal(result.texts[3], r.proof(j)) {
		r.t.Errorf("status %d: %q", result.numbers[2], result.texts[4])
	}
}

// forwarded sends what the rack does not prove; kind 0 is nobody's.
func forwarded(c *curio, up *otherProver) {
	c.t.Helper()
	for id, kind := range map[string]int{
		"snap-1000-5": kindSnap, "ps-snap-1000-5-9": kindSnap, "wdpost-1000-2-r": kindWindow, "winpost-1000-r": kindWinning,
	} {
		request := []field{
			{1, id}, {2, kind}, {3, 34359738368}, {4, 3}, {5, 3}, {11, []byte("a")}, {11, []byte("b")}, {21, 1000},
			{22, []byte("r")}, {23, 2}, {30, []byte("o")}, {31, []byte("n")}, {32, []byte("d")},
		}
		submitted := c.must("SubmitProof", request...)
		if got := up.last("SubmitProof"); !bytes.Equal(got, handMade(request...)) {
			c.t.Errorf("%s arrived as %x", id, got)
		}
		ended := c.must("AwaitProof", field{1, submitted.texts[1]}, field{2, 1000})
		if got := up.last("AwaitProof"); !bytes.Equal(got, handMade(field{1, "up 1"}, field{2, 1000})) ||
			!bytes.Equal(ended.texts[1], submitted.texts[1]) {
			c.t.Errorf("%s was asked for as %x", id, got)
		}
		result := c.proved(c.must("Prove", field{1, request}))
		if got := up.last("Prove"); !bytes.Equal(got, handMade(field{1, request})) ||
			string(result.texts[3]) != "their proof" {
			c.t.Errorf("%s arrived as %x, %q came back", id, got, result.texts[3])
		}
	}
	_, err := c.call("Prove", field{1, []field{{1, "x"}, {10, toy.Slice(1)}}})
	if status.Code(err) != codes.InvalidArgument {
		c.t.Errorf("kind 0: %v", err)
	}
}

// Without an upstream what the rack does not prove is unimplemented, and the log says what that costs.
func TestGatewayWithoutUpstreamSaysWhatIsLost(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	gateway, target := r.startGateway()
	c := newCurio(t, target)
	for _, kind := range []int{kindSnap, kindWindow, kindWinning} {
		if _, err := c.call("SubmitProof", field{1, fmt.Sprint("x", kind)}, field{2, kind}); status.Code(err) !=
			codes.Unimplemented {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
	if log := gateway.log.String(); strings.Count(log, "NOTHING IS FORWARDED") != 1 {
		t.Errorf("log: %s", log)
	}
	gateway.signal(syscall.SIGTERM)
	<-gateway.done
	if code := gateway.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
