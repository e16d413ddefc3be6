//go:build long

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// buildCLI builds the program proofrack when a test first wants it.
var buildCLI = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // one build for all tests
	path := filepath.Join(built.folder, "proofrack")
	return path, buildProgram(path, "cli", "toy")
})

// command is a command line of proofrack for this rack.
func (r *rack) command(args ...string) []string {
	r.t.Helper()
	program, err := buildCLI()
	r.check(err)
	return append(append([]string{program}, args...), "--server", r.nats.url())
}

// shows runs a command of proofrack within a limit, which must end with one of some codes, and gives what it prints as
// JSON.
func (r *rack) shows(limit time.Duration, codes []int, args ...string) ([]byte, error) {
	r.t.Helper()
	line := r.command(append(args, "--json")...)
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("no answer within %s", limit)
	case cmd.ProcessState == nil:
		return nil, err
	case !slices.Contains(codes, cmd.ProcessState.ExitCode()):
		return nil, fmt.Errorf("ended with code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
	return out, nil
}

// What commands end with: they are done; what was asked for is not ready.
const (
	exitDone     = 0
	exitNotReady = 9
)

// B33: fifty workers register and are gone within the second, for three minutes, while ten jobs run. Every command of
// proofrack that only reads answers within two seconds, the jobs go on meanwhile, and the dead leave the list within a
// lease.
func TestDrillB33FiftyWorkersComeAndGo(t *testing.T) {
	d := newDrill(t)
	d.command() // is built before the clock runs
	d.coordinator()
	d.node("n1", simulated(d.of(9*time.Second), 0)...) // twenty partitions take as long as the workers flap
	d.ready()
	for i := range uint64(10) {
		d.submit(10*i, 10*i+1)
	}
	missed, round := map[string]int{}, 0
	proved := d.proved()
	for end := time.Now().Add(d.of(3 * time.Minute)); time.Now().Before(end); round++ {
		begun := time.Now()
		for i := range 50 {
			d.flap(i, round)
		}
		d.askEverything(missed)
		time.Sleep(time.Until(begun.Add(time.Second)))
	}
	last, now := time.Now(), d.proved()
	t.Logf("%d rounds; %d partitions were proved before and %d after", round, proved, now)
	if now <= proved {
		t.Error("no partition was proved while workers came and went")
	}
	untilWithin(t, 2*d.lease()+patience, "the dead have left the list", func() bool {
		v := d.view()
		return v != nil && len(v.Nodes) == 1
	})
	// A lease, and what beats, ticks and this machine need beside.
	if took := time.Since(last); took > d.lease()+5*time.Second {
		t.Errorf("the dead left the list after %s, a lease is %s", took, d.lease())
	}
	d.done(3 * time.Minute)
}

// proved is how many partitions have their proof.
func (r *rack) proved() (count int) {
	r.t.Helper()
	for _, j := range r.jobs {
		count += r.record(j).VerifiedCount()
	}
	return count
}

// flap is a worker that says once that it is there. Every other one says, too, that it goes.
func (d *drill) flap(number, round int) {
	d.t.Helper()
	name := job.Node(fmt.Sprintf("flap-%d", number))
	states := []string{wire.StateReady, wire.StateDraining}
	for i, state := range states[:1+number%2] {
		data, err := wire.Encode(&wire.Beat{
			Node: name, Boot: "boot", Instance: fmt.Sprintf("%s-%d", name, round), Role: wire.RoleSynth, Seq: uint64(i + 1),
			Build: "drill", WireMin: wire.VersionMin, WireMax: wire.Version, State: state, Slots: 1,
		})
		d.check(err)
		d.check(d.bus.Send(d.t.Context(), bus.Message{Subject: wire.BeatSubject(name), Data: data}))
	}
}

// askEverything runs every command that only reads, each with a limit of two seconds. On a crowded machine the lead may
// pass on in between; who asks again is answered.
func (d *drill) askEverything(missed map[string]int) {
	d.t.Helper()
	first, last := string(d.jobs[0].id), string(d.jobs[len(d.jobs)-1].id)
	for _, c := range []struct {
		codes []int
		args  []string
	}{
		{[]int{exitDone}, []string{"nodes"}},
		{[]int{exitDone}, []string{"ledger"}},
		{[]int{exitDone}, []string{"jobs"}},
		{[]int{exitDone}, []string{"jobs", "--all-tenants"}},
		{[]int{exitDone}, []string{"job", last}},
		{[]int{exitDone}, []string{"why", last}},
		{[]int{exitDone, exitNotReady}, []string{"result", first}},
		{[]int{exitDone}, []string{"audit"}},
		{[]int{exitDone}, []string{"dlq", "list"}},
	} {
		name := strings.Join(c.args, " ")
		out, err := d.shows(2*time.Second, c.codes, c.args...)
		if err == nil && len(out) > 0 && !json.Valid(out) {
			err = fmt.Errorf("no JSON: %s", out)
		}
		if err == nil {
			missed[name] = 0
			continue
		}
		d.t.Logf("%s: %v", name, err)
		if missed[name]++; missed[name] > 1 {
			d.t.Errorf("%s was not answered twice in a row: %v", name, err)
		}
	}
}
