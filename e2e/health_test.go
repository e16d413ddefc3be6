package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/service"
)

// probed is a program whose health is asked.
type probed struct {
	*process

	address string
}

// Bounds of field report B108, five seconds and one, with room for a crowded machine. What must not be is that an
// answer waits for what hangs, or that nobody looks.
const (
	unreadyWithin = 30 * time.Second
	answerWithin  = 10 * time.Second
)

// ask gets what a health address says. It fails the test when the answer takes too long.
func (p *probed) ask(path string) (ok bool, reason string) {
	p.t.Helper()
	client := http.Client{Timeout: 3 * answerWithin}
	began := time.Now()
	resp, err := client.Get("http://" + p.address + path)
	if err != nil {
		return false, err.Error()
	}
	defer resp.Body.Close()
	var state service.State
	if err := json.NewDecoder(resp.Body).Decode(&state); err != nil {
		p.t.Fatalf("%s of %s: %v", path, p.name, err)
	}
	if took := time.Since(began); took > answerWithin {
		p.t.Errorf("%s of %s took %s", path, p.name, took)
	}
	if ok = resp.StatusCode == http.StatusOK; ok != state.OK {
		p.t.Errorf("%s of %s: status %d, %+v", path, p.name, resp.StatusCode, state)
	}
	return ok, state.Reason()
}

// probe is a free address for the health of a program, as a setting.
func probe(t *testing.T) (address, setting string) {
	address = freePort(t)
	return address, "http.listen=" + address
}

// becomes waits until a program is ready, or is not and its reason names each of the parts, and is alive all the time.
func becomes(t *testing.T, p *probed, ready bool, within time.Duration, parts ...string) {
	t.Helper()
	last := ""
	defer func() {
		if t.Failed() {
			t.Logf("%s, last: %s", p.name, last)
		}
	}()
	untilWithin(t, within, fmt.Sprintf("%s is ready: %v %q", p.name, ready, parts), func() bool {
		ok, reason := p.ask("/readyz")
		last = reason
		if ok != ready {
			return false
		}
		for _, part := range parts {
			if !strings.Contains(reason, part) {
				return false
			}
		}
		return true
	})
	if alive, reason := p.ask("/livez"); !alive {
		t.Errorf("%s is not alive: %s", p.name, reason)
	}
}

// B108: readiness of every process asks what it needs, one part missing after the other; liveness stays up.
func TestB108ReadinessNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	params := filepath.Join(t.TempDir(), "params")
	r.check(os.Mkdir(params, 0o700))
	whole := r.params
	r.params = params // empty
	n := r.addNode("n1")
	if err := syscall.Mount("tmpfs", n.spill, "tmpfs", 0, "size=12m"); err != nil {
		t.Fatalf("mount a small tmpfs (needs root): %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(n.spill, syscall.MNT_DETACH) })
	foreign := filepath.Join(n.spill, "foreign")
	r.check(os.WriteFile(foreign, make([]byte, 11<<20), 0o600))
	start := func(run func(settings ...string) *process, settings ...string) *probed {
		address, setting := probe(t)
		return &probed{process: run(append(settings, setting)...), address: address}
	}
	coordinator := start(r.startCoordinator)
	synth := start(n.startSynth, "synth.pad_bytes=4MiB")
	gpu := start(n.startGPU, "prove.cache="+t.TempDir())
	for _, c := range []struct {
		probed *probed
		parts  []string
	}{
		{coordinator, []string{"parameters: ", params}}, {gpu, []string{"work: ", "parameters", params}},
		{synth, []string{"work: ", "needs ", "has ", n.spill}},
	} {
		becomes(t, c.probed, false, patience, c.parts...)
	}
	r.check(os.Remove(foreign))
	r.check(os.CopyFS(params+"/.", os.DirFS(whole)))
	all := []*probed{coordinator, synth, gpu}
	ready := func() {
		t.Helper()
		for _, p := range all {
			becomes(t, p, true, patience)
		}
	}
	ready()
	r.nats.kill()
	for _, p := range all {
		becomes(t, p, false, unreadyWithin, "nats: ")
	}
	r.nats.start(t)
	ready()
	r.redis.kill()
	becomes(t, coordinator, false, unreadyWithin, "redis: ")
	for _, p := range []*probed{synth, gpu} { // only coordinators talk to Redis
		becomes(t, p, true, unreadyWithin)
	}
	r.redis.start(t)
	ready()
	r.redis.signal(syscall.SIGSTOP)
	becomes(t, coordinator, false, unreadyWithin, "redis: ")
	r.redis.signal(syscall.SIGCONT)
	ready()
	r.ready()
	r.submit(1)
	r.waitDone()
	r.checkQuiet()
}
