//go:build long

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/job"
)

// alarms is a Prometheus with the shipped rules that reads a rack's programs.
type alarms struct {
	*testing.T

	address  string
	programs []scraped
	left     []string // what the test has still to provoke
}

// page gives the setting by which a program shows its metrics where they are read from once the alarms are on.
func (a *alarms) page(role string) (setting string) {
	a.Helper()
	p := scraped{role, freePort(a.T)}
	a.programs = append(a.programs, p)
	return "metrics.listen=" + p.address
}

// newAlarms has the alerts of the test still to provoke.
func newAlarms(t *testing.T) *alarms { return &alarms{T: t, left: slices.Clone(provoked()[t.Name()])} }

// on starts the Prometheus. Intervals are shorter than shipped, and so are the times that rules wait (hasty).
func (a *alarms) on() {
	a.Helper()
	a.address = startPrometheus(a.T, a.programs)
	a.Cleanup(func() {
		if len(a.left) > 0 && !a.Failed() {
			a.Errorf("not provoked: %v", a.left)
		}
	})
}

// provoke demands that alerts don't fire, does what provokes them, and waits until they do.
func (a *alarms) provoke(do func(), names ...string) {
	a.Helper()
	a.calm(names...)
	do()
	a.fire(names...)
}

func (a *alarms) calm(names ...string) {
	a.Helper()
	untilWithin(a.T, 2*patience, "Prometheus answers", func() bool {
		now := fires(a.T, a.address)
		for _, name := range names {
			if now["Proofrack"+name] {
				a.Errorf("%s fires before it is provoked", name)
			}
		}
		return now != nil
	})
}

// fire waits until alerts fire.
func (a *alarms) fire(names ...string) {
	a.Helper()
	missing := names
	defer func() {
		if a.Failed() {
			a.Logf("missing: %v", missing)
		}
	}()
	untilWithin(a.T, 2*patience, strings.Join(names, ", ")+" fire", func() bool {
		now := fires(a.T, a.address)
		missing = slices.DeleteFunc(slices.Clone(missing), func(name string) bool { return now["Proofrack"+name] })
		return len(missing) == 0
	})
	a.Logf("%s", strings.Join(names, ", "))
	a.left = slices.DeleteFunc(a.left, func(name string) bool { return slices.Contains(names, name) })
}

// sees waits until Prometheus has an answer to a query: counters have risen for it only where it saw them before.
func (a *alarms) sees(expr string) {
	a.Helper()
	untilWithin(a.T, 2*patience, expr, func() bool {
		answer, err := (&http.Client{Timeout: time.Minute}).Get(
			"http://" + a.address + "/api/v1/query?query=" + url.QueryEscape(expr))
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		var reply struct {
			Data struct{ Result []json.RawMessage }
		}
		return json.NewDecoder(answer.Body).Decode(&reply) == nil && len(reply.Data.Result) > 0
	})
}

// A device whose proofs are wrong, then fail: jobs fail, and it is taken out. (One that gave a wrong proof has to prove
// a known answer before it works again; a restart of its worker lets it begin anew.)
func TestLongAlertsOfADeviceThatLies(t *testing.T) {
	t.Parallel()
	r, a := newRack(t), newAlarms(t)
	r.calm()
	r.startCoordinator("attempts.failed_max=1", "schedule.quarantine_after=2", a.page("coordinator"))
	n := r.addNode("n1")
	n.startSynth()
	gpu := a.page("gpu")
	works := func(simulate string) {
		n.startGPU("simulate={cpu='"+simulate+"'}", "engine.faults_max=100", gpu)
		r.ready()
	}
	fails := func(seed uint64) {
		if record := r.waitEnd(r.submit(seed)); record.State != job.Failed {
			t.Errorf("job is %s", record.State)
		}
	}
	works(`{"flip_every":1}`)
	a.on()
	a.sees("c2_device_wrong_proofs_total == 0")
	a.sees(`c2_jobs_ended_total{state="failed"} == 0`)
	a.provoke(func() { fails(1) }, "WrongProofs", "JobsFail", "DeviceUnusable")
	a.sees("c2_device_faults_total == 1")
	a.provoke(func() {
		for seed := range uint64(5) {
			n.gpu.kill()
			works(`{"failures":["error@start#1"]}`)
			fails(2 + seed)
		}
	}, "DeviceFaults")
	a.provoke(func() {
		n.gpu.kill()
		works(`{"failures":["error@start#1","error@start#2"]}`)
		fails(10)
		fails(11)
	}, "DeviceQuarantined")
}

// An engine is killed again and again; then proofs fail on both nodes.
func TestLongAlertsOfEnginesThatDie(t *testing.T) {
	t.Parallel()
	r, a := newRack(t), newAlarms(t)
	r.startCoordinator("attempts.failed_max=3", "schedule.quarantine_after=10", "schedule.halt_window=10m",
		a.page("coordinator"))
	const fails = `simulate={cpu='{"failures":["error@start#1","error@start#2"]}'}`
	n1, n2 := r.addNode("n1"), r.addNode("n2")
	n1.startSynth()
	n2.startSynth()
	page := a.page("gpu n1")
	n1.startGPU("engine.faults_max=100", "engine.pause_max=100ms", page)
	n2.startGPU(fails, "engine.faults_max=100")
	r.ready()
	a.on()
	a.provoke(func() {
		for starts := range 5 {
			a.sees(fmt.Sprintf("c2_engine_starts_total >= %d", 1+starts))
			for _, engine := range children(n1.gpu.pid()) {
				_ = syscall.Kill(engine, syscall.SIGKILL)
			}
		}
	}, "EngineRestarts")
	n1.gpu.kill()
	n1.startGPU(fails, "engine.faults_max=100", page)
	r.ready()
	a.provoke(func() {
		for seed := range uint64(6) {
			r.submit(seed)
		}
	}, "RackHalted")
}

// All of a node's processes are frozen while it has work: that is lost, and its bytes are nobody's to give back.
func TestLongAlertsOfFrozenWorkers(t *testing.T) {
	t.Parallel()
	const partitions = 8
	r, a := newRack(t), newAlarms(t)
	r.startCoordinator(a.page("coordinator"))
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU(r.hooked("pause@gpu.mid-proof")...)
	r.ready()
	a.on()
	var seeds []uint64
	for seed := range uint64(partitions) {
		seeds = append(seeds, seed)
	}
	j := r.submit(seeds...)
	engine := r.reached("gpu.mid-proof#1")
	until(t, "all of it is on the node", func() bool {
		for _, p := range r.record(j).Partitions {
			if p.Stage != job.Sealed && p.Stage != job.Proving {
				return false
			}
		}
		return true
	})
	a.sees(`c2_attempts_total{outcome="lost"} == 0`)
	a.provoke(func() {
		frozen(t, n.synth.pid(), n.gpu.pid(), engine)
	}, "Limbo", "AttemptsLost")
}

// frozen stops processes until they are let go.
func frozen(t *testing.T, pids ...int) (thaw func()) {
	t.Helper()
	thaw = func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	t.Cleanup(thaw)
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	return thaw
}

// A node with room for two segments, whose workers take more memory than they are told to, keep some, and whose room is
// made smaller.
func TestLongAlertsOfMemory(t *testing.T) {
	t.Parallel()
	r, a := newRack(t), newAlarms(t)
	r.lease = 10 * time.Minute // work is held at hooks
	r.startCoordinator("memory.store_every=100ms", a.page("coordinator"))
	n := r.addNode("n1")
	n.startSynth(append(r.hooked("leak@flight.input#2", "pause@synth.before-seal"), "synth.scratch_bytes=140MiB",
		"synth.ballast_bytes=200MiB", "synth.pad_bytes=32MiB", "memory.shm_max=80MiB", a.page("synth"))...)
	until(t, "the synthesis worker speaks for the node", func() bool { return r.book("n1") != nil })
	n.startGPU(append(r.hooked("pause@gpu.mid-proof", "pause@gpu.mid-proof#9"), "memory.shm_max=16MiB",
		a.page("gpu"))...)
	r.ready()
	a.on()

	a.calm("BufferLeak", "SizeDrift")
	a.provoke(func() { // the second partition waits behind the first: it is booked, and the node has not heard of it
		r.submit(1, 2)
		r.reached("synth.before-seal#1")
	}, "BookDisagrees")
	r.letGo("synth.before-seal#1")
	r.reached("gpu.mid-proof#1")
	a.provoke(func() { r.submit(3, 4, 5, 6, 7, 8) }, "WaitsForMemory", "QueueOld")
	r.letGo("gpu.mid-proof#1")
	r.waitDone()
	a.fire("BufferLeak", "SizeDrift")

	r.submit(9)
	r.reached("gpu.mid-proof#9")
	a.provoke(n.synth.kill, "Overbooked") // now the other worker speaks, which was told of less
	a.provoke(func() {
		r.nats.kill()
		r.letGo("gpu.mid-proof#9")
	}, "ResultsUnsent")
}
