package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// Builds of other versions of the wire, made when a test first wants them.
var (
	buildBefore = sync.OnceValues(func() (programs, error) { return buildOther("wire1") }) //nolint:gochecknoglobals
	buildAfter  = sync.OnceValues(func() (programs, error) { return buildOther("wire3") }) //nolint:gochecknoglobals
)

func buildOther(tag string) (programs, error) {
	folder := filepath.Join(built.folder, tag)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return programs{}, err
	}
	return buildPrograms(folder, "toy,"+tag)
}

// rolling is a rack of two coordinators and a node, of the build before this one, that is restarted with this one.
type rolling struct {
	*rack

	node *node
	seed uint64
	anew map[string]bool // roles of workers that are of this build
}

func newRolling(t *testing.T) *rolling {
	t.Helper()
	r := &rolling{rack: newRack(t), anew: map[string]bool{}}
	r.calm()
	before, err := buildBefore()
	r.check(err)
	r.programs = before
	r.startCoordinator()
	r.startCoordinator()
	r.node = r.addNode("n1")
	r.node.startSynth()
	r.node.startGPU()
	r.ready()
	if v := r.leaderWire(); v != 1 {
		t.Fatalf("the old build leads with version %d", v)
	}
	r.programs = built.programs
	return r
}

// leaderWire is the version that the leader's answers are written in, 0 while none answers.
func (r *rack) leaderWire() int {
	r.t.Helper()
	ask, err := wire.Encode(&wire.Empty{})
	r.check(err)
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Second)
	defer cancel()
	message, err := r.bus.Request(ctx, bus.Message{Subject: wire.AdminSubject(wire.AdminNodes), Data: ask})
	if err != nil {
		return 0
	}
	var head struct {
		Version int `json:"v"`
	}
	r.check(json.Unmarshal(message.Data, &head))
	return head.Version
}

// untilWire waits until the ready workers of a role, and only they, read up to a version.
func (r *rack) untilWire(n *node, role string, version int) {
	r.t.Helper()
	until(r.t, string(n.name)+"'s "+role+" worker is of the wanted build", func() bool {
		v := r.view()
		if v == nil {
			return false
		}
		count := 0
		for _, node := range v.Nodes {
			for _, p := range node.Processes {
				if node.Node == n.name && p.Role == role && p.State == wire.StateReady {
					count++
					if p.WireMax != version {
						return false
					}
				}
			}
		}
		return count > 0
	})
}

// atWork submits a job of thirteen partitions and comes back when it is at work. It does not end before let is called:
// the process given is frozen till then, with a partition before it.
func (r *rolling) atWork(frozen *process, before job.Stage) (let func()) {
	r.t.Helper()
	for {
		seeds := make([]uint64, 13)
		for i := range seeds {
			r.seed++
			seeds[i] = r.seed
		}
		j := r.submit(seeds...)
		until(r.t, "the job is at work", func() bool {
			record := r.record(j)
			return record.State.Ended() ||
				slices.ContainsFunc(record.Partitions, func(p job.Partition) bool { return p.Stage.Running() })
		})
		frozen.signal(syscall.SIGSTOP)
		let := func() { frozen.signal(syscall.SIGCONT) }
		if slices.ContainsFunc(r.record(j).Partitions, func(p job.Partition) bool {
			return p.Stage == job.Waiting || p.Stage == job.Reserved || p.Stage == before
		}) {
			return let
		}
		let() // it was too late: all had gone by
		r.waitDone(j)
	}
}

// restart asks a process to end while a job is at work, starts the new one, and sees to it that the mixture proves.
func (r *rolling) restart(old *process, anew func()) {
	r.t.Helper()
	frozen, before := r.node.gpu, job.Sealed
	if old == frozen {
		frozen, before = r.node.synth, job.Reserved
	}
	let := r.atWork(frozen, before)
	old.signal(syscall.SIGTERM)
	let()
	select {
	case <-old.done:
	case <-r.t.Context().Done():
	}
	if code := old.cmd.ProcessState.ExitCode(); code != 0 {
		r.t.Errorf("%s ended with %d", old.name, code)
	}
	anew()
	r.seed++
	j := r.submit(r.seed)
	r.waitDone(j)
	// The build before tells nobody how long synthesis took, and does not hear it: that is what it lacks.
	seconds := r.record(j).Partitions[0].Last().Seconds
	if _, measured := seconds["synthesis"]; measured != (r.anew[wire.RoleSynth] && r.anew[wire.RoleGPU]) {
		r.t.Errorf("workers of this build are %v, measured is %v", r.anew, seconds)
	}
}

func (r *rolling) restartCoordinators() {
	r.t.Helper()
	for _, c := range slices.Clone(r.coordinators) {
		r.restart(c, func() { r.startCoordinator() })
	}
	until(r.t, "the new build leads", func() bool { return r.leaderWire() == wire.Version })
}

func (r *rolling) restartGPU() {
	r.t.Helper()
	r.untilWire(r.node, wire.RoleGPU, 1)
	r.restart(r.node.gpu, func() { r.node.startGPU(); r.anew[wire.RoleGPU] = true })
	r.untilWire(r.node, wire.RoleGPU, wire.Version)
}

func (r *rolling) restartSynth() {
	r.t.Helper()
	r.untilWire(r.node, wire.RoleSynth, 1)
	r.restart(r.node.synth, func() { r.node.startSynth(); r.anew[wire.RoleSynth] = true })
	r.untilWire(r.node, wire.RoleSynth, wire.Version)
}

// checkNothingLost is what a restart may not cost: no attempt was lost or failed, and nothing finished was made again.
func (r *rolling) checkNothingLost() {
	r.t.Helper()
	r.waitDone()
	for _, j := range r.jobs {
		for i, p := range r.record(j).Partitions {
			for _, a := range p.Attempts {
				if a.Outcome != job.OutcomeOK && a.Outcome != job.OutcomeHandedBack {
					r.t.Errorf("job %s partition %d: attempt %d is %s: %+v", j.id, i, a.Fence, a.Outcome, a.Fault)
				}
			}
		}
	}
	r.checkQuiet()
}

// Every process is restarted, one by one, from a build of wire version 1, which lacks fields, to this one, while jobs
// run. Each mixture on the way proves.
func TestRollingRestartInTheDocumentedOrder(t *testing.T) {
	t.Parallel()
	r := newRolling(t)
	r.restartCoordinators()
	r.restartGPU()
	r.restartSynth()
	r.checkNothingLost()
}

// The same in the opposite order: workers are newer than who leads them, synthesis newer than the device.
func TestRollingRestartInTheOppositeOrder(t *testing.T) {
	t.Parallel()
	r := newRolling(t)
	r.restartSynth()
	r.restartGPU()
	r.restartCoordinators()
	r.checkNothingLost()
}

// A coordinator two versions ahead of a node's workers gives them nothing and says why; it works with its neighbour.
func TestRollingRestartThatSkipsAVersionPairsNothing(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.calm()
	before, err := buildBefore()
	r.check(err)
	after, err := buildAfter()
	r.check(err)
	r.programs = after
	r.startCoordinator()
	r.programs = before
	old := r.addNode("n1")
	old.startSynth()
	old.startGPU()
	r.untilWire(old, wire.RoleSynth, 1)
	r.untilWire(old, wire.RoleGPU, 1)
	r.ready()
	if v := r.leaderWire(); v != 3 {
		t.Fatalf("version %d leads", v)
	}
	j := r.submit(1, 2)
	until(t, "the job says that versions do not meet", func() bool {
		w, err := r.client.Why(t.Context(), j.id)
		return err == nil && slices.ContainsFunc(w.Reasons, func(reason wire.Reason) bool {
			return strings.Contains(reason.Text, "speaks other versions (coordinator 2 to 3, synthesis 1 to 1, device 1 to 1)")
		})
	})
	for i, p := range r.record(j).Partitions {
		if p.Stage != job.Waiting || p.Fence != 0 {
			t.Errorf("partition %d is %s with fence %d", i, p.Stage, p.Fence)
		}
	}
	if left := r.messages(wire.StreamSynth); left != "" {
		t.Errorf("work was sent: %s", left)
	}
	r.programs = built.programs
	next := r.addNode("n2")
	next.startSynth()
	next.startGPU()
	r.waitDone()
	for i, p := range r.record(j).Partitions {
		if p.Node != "n2" || len(p.Attempts) != 1 {
			t.Errorf("partition %d: node %s, attempts %+v", i, p.Node, p.Attempts)
		}
	}
	r.checkQuiet()
}
