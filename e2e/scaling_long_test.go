//go:build long

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
)

// paramsEnv names a folder with parameters of the 2 KiB circuit, so that none are generated.
const paramsEnv = "PARAMS_2KIB"

// scalingEach is how many sectors each node proves, scalingSector which.
const (
	scalingEach   = 6
	scalingSector = "2KiB-v1_1"
)

// Two nodes in network namespaces of their own, each with its own spill folder and pinned to one core, against two
// plain `proofrack prove` pinned alike and running at once: the same sectors, one after another on each core. What the
// rack has beside its workers, coordinator, NATS and Redis, runs on the same two cores and is counted. The nodes are
// up before the clock starts, as they are on a rack; a plain process has its own start in its time, so that time less
// its starts is given, too.
func TestLongScalingOverTwoHosts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces and must be run as root")
	}
	if runtime.NumCPU() < 2 {
		t.Fatal("this test needs two processors")
	}
	r := &rack{t: t, nats: startNATSForHosts(t), redis: startRedis(t)}
	r.equip()
	r.dial() // and nothing is watched: that would take time from the rack
	c1, input := r.real(scalingSector)
	r.circuits = input.Circuit().ID()
	if r.params = os.Getenv(paramsEnv); r.params == "" {
		r.params = t.TempDir()
		_, err := generate.ToFolder(t.Context(), r.params, input.Circuit(),
			generate.FromSeed("e2e", r.circuits), generate.Options{})
		r.check(err)
	}
	plain := newPlain(t, r, c1)
	plain.warm() // parameters into the page cache, their digest into the cache of digests
	whole, proving := plain.run()

	r.startShipped()
	for core := range 2 {
		r.addNode(job.Node(fmt.Sprintf("host-%d", core))).workOn(core)
	}
	untilWithin(t, 3*time.Minute, "both nodes are ready", func() bool {
		v := r.view()
		return v != nil && v.Ready && len(v.Nodes) == 2 && v.Nodes[0].Ready && v.Nodes[1].Ready &&
			len(v.Nodes[0].Devices) > 0 && len(v.Nodes[0].Devices[0].Circuits) > 0 &&
			len(v.Nodes[1].Devices) > 0 && len(v.Nodes[1].Devices[0].Circuits) > 0
	})
	before, self := r.processorTimes(), selfTime(t)
	began := time.Now()
	for i := range 2 * scalingEach {
		r.submitReal(fmt.Sprintf("sector %d", i), c1, input)
	}
	r.ended(10 * time.Minute)
	took := time.Since(began)
	for name, spent := range r.processorTimes() {
		t.Logf("processor time of %s: %s", name, spent-before[name])
	}
	t.Logf("processor time of the test itself: %s", selfTime(t)-self)
	t.Logf("processor time of the plain processes: %s", plain.processor())
	proofs := map[job.Node]int{}
	for _, j := range r.jobs {
		proofs[r.record(j).Partitions[0].Last().Node]++
	}
	t.Logf("%d sectors: plain %.2f s (%.2f s without starts), rack %.2f s, by node %v", 2*scalingEach, whole.Seconds(),
		proving.Seconds(), took.Seconds(), proofs)
	r.showSeconds()
	ratio := whole.Seconds() / took.Seconds()
	figure(t, "two pinned nodes to two plain pinned processes", ratio, "", ">= 0.97", ratio >= 0.97)
	t.Logf("to plain processes without their starts: %.4f", proving.Seconds()/took.Seconds())
	r.checkQuietLater()
}

// plain is `proofrack prove` without a rack.
type plain struct {
	rack                   *rack
	binary, folder, source string

	mu    sync.Mutex
	spent time.Duration // processor time since warm
}

func (p *plain) processor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent
}

// processorTimes are what each process of the rack has used so far; engines count with their worker.
func (r *rack) processorTimes() map[string]time.Duration {
	r.t.Helper()
	processes := append([]*process{r.nats.process, r.redis.process}, r.coordinators...)
	for _, n := range r.nodes {
		processes = append(processes, n.synth, n.gpu)
	}
	times := map[string]time.Duration{}
	for _, p := range processes {
		for _, pid := range append(children(p.pid()), p.pid()) {
			text := readText("/proc/" + strconv.Itoa(pid) + "/stat")
			fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
			for _, field := range fields[11:13] { // user and system time in hundredths of a second
				ticks, err := strconv.ParseInt(field, 10, 64)
				r.check(err)
				times[p.name] += time.Duration(ticks) * 10 * time.Millisecond
			}
		}
	}
	return times
}

// selfTime is the processor time of this process.
func selfTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func newPlain(t *testing.T, r *rack, c1 []byte) *plain {
	t.Helper()
	p := &plain{rack: r, folder: t.TempDir()}
	p.binary, p.source = filepath.Join(p.folder, "proofrack"), filepath.Join(p.folder, "c1.json")
	out, err := exec.Command("go", "build", "-o", p.binary, "github.com/proofrack/proofrack/cli").CombinedOutput()
	if err != nil {
		t.Fatalf("build proofrack: %v\n%s", err, out)
	}
	r.check(os.WriteFile(p.source, c1, 0o600))
	return p
}

// prove proves the sector once, on one core, and gives the seconds of its stages.
func (p *plain) prove(ctx context.Context, core int) (proving time.Duration, err error) {
	cmd := exec.CommandContext(ctx, "taskset", "-c", strconv.Itoa(core), p.binary, "prove", p.source, "--miner", "1000",
		"--sector-number", "4243", "--params", p.rack.params, "--cache", p.folder,
		"--out", filepath.Join(p.folder, fmt.Sprintf("proof-%d", core)), "--json")
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("proofrack prove: %w\n%s", err, &failed)
	}
	p.mu.Lock()
	p.spent += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	p.mu.Unlock()
	var result struct {
		Input  float64            `json:"input_seconds"`
		Stages map[string]float64 `json:"stage_seconds"`
	}
	if err := json.Unmarshal(out, &result); err != nil {
		return 0, err
	}
	sum := result.Input
	for _, s := range result.Stages {
		sum += s
	}
	return time.Duration(sum * float64(time.Second)), nil
}

func (p *plain) warm() {
	_, err := p.prove(p.rack.t.Context(), 0)
	p.rack.check(err)
	p.spent = 0
}

// run proves scalingEach sectors on each of two cores at once. It gives the time until both are through, and the same
// without the starts of the processes.
func (p *plain) run() (whole, proving time.Duration) {
	var wg sync.WaitGroup
	var times [2]time.Duration
	var errs [2]error
	began := time.Now()
	for core := range 2 {
		wg.Go(func() {
			for range scalingEach {
				d, err := p.prove(p.rack.t.Context(), core)
				times[core] += d
				errs[core] = errors.Join(errs[core], err)
			}
		})
	}
	wg.Wait()
	p.rack.check(errors.Join(errs[:]...))
	return time.Since(began), max(times[0], times[1])
}

// startNATSForHosts starts a NATS server that other network namespaces reach.
func startNATSForHosts(t *testing.T) *natsServer {
	t.Helper()
	_, port, err := net.SplitHostPort(freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	s := &natsServer{dir: t.TempDir(), listen: "127.0.0.1:" + port}
	s.process = start(t, "nats", built.nats, "-hosts", "-dir", s.dir, "-listen", "0.0.0.0:"+port)
	s.await(t, s.listen)
	return s
}

// workOn starts the workers of a node in a network namespace of its own, pinned to one core.
func (n *node) workOn(core int) {
	r := n.rack
	r.t.Helper()
	space, server := namespace(r.t, core)
	_, port, err := net.SplitHostPort(r.nats.listen)
	r.check(err)
	enter := []string{"ip", "netns", "exec", space, "taskset", "-c", strconv.Itoa(core)}
	common := []string{
		"nats.urls=nats://" + net.JoinHostPort(server, port), "node=" + string(n.name), "spill.path=" + n.spill,
		"memory.claims=" + n.claims(),
		fmt.Sprintf("memory.ram_max=%d", 4*bytesize.GiB),
	}
	n.synth = start(r.t, "synth "+string(n.name), append(append(enter, built.synth), flags(quietly(), common,
		[]string{"synth.circuits=" + r.circuits, "synth.slots=1"})...)...)
	n.gpu = start(r.t, "gpu "+string(n.name), append(append(enter, built.gpu), flags(quietly(), common, []string{
		"prove.devices=cpu", "prove.circuits=" + r.circuits, "prove.params=" + r.params,
		"prove.cache=" + filepath.Join(n.spill, "cache"),
	})...)...)
}

// namespace makes a network namespace with one link to here, and gives its name and our address on the link.
func namespace(t *testing.T, number int) (space, server string) {
	t.Helper()
	space = fmt.Sprintf("rack-%d-%d", os.Getpid(), number)
	here, there := fmt.Sprintf("rk%dh%d", os.Getpid(), number), fmt.Sprintf("rk%dn%d", os.Getpid(), number)
	subnet := fmt.Sprintf("10.213.%d", number)
	run := func(command ...string) {
		t.Helper()
		if out, err := exec.Command("ip", command...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v\n%s", command, err, out)
		}
	}
	run("netns", "add", space)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", space).Run() }) // with its end of the link
	run("link", "add", here, "type", "veth", "peer", "name", there, "netns", space)
	run("addr", "add", subnet+".1/24", "dev", here)
	run("link", "set", here, "up")
	run("-n", space, "addr", "add", subnet+".2/24", "dev", there)
	run("-n", space, "link", "set", there, "up")
	run("-n", space, "link", "set", "lo", "up")
	return space, subnet + ".1"
}
