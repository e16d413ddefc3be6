//go:build long

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// What goes out while the watchers are frozen. The events are as large as those of failed attempts may be, so that more
// goes out than the server keeps for one connection: it cuts the watcher off.
const (
	watchedEvents     = 20_000
	watchedEventBytes = 4 << 10
)

// B68: two processes that watch a job each are frozen for a minute while 20,000 events go out. The workers are not
// slowed and prove meanwhile, until they are cordoned off. Afterwards the watchers notice that they missed something:
// within ten seconds one has ended with its job, and the other one says of its job what `proofrack job` says.
func TestDrillB68FrozenWatchers(t *testing.T) {
	const perPartition = time.Second
	d := newDrill(t)
	d.command() // is built before the clock runs
	d.coordinator("schedule.device_partitions_max=2")
	d.node("n1", simulated(perPartition, 0)...)
	d.ready()
	ends, goesOn := d.submit(upTo(8)...), d.submit(upTo(16)...)
	first, second := d.watcher(ends), d.watcher(goesOn)
	before := sockets(second)
	first.signal(syscall.SIGSTOP)
	second.signal(syscall.SIGSTOP)
	frozen := time.Now()
	if d.record(ends).State.Ended() {
		t.Fatal("the first job has ended already: the machine is too slow for this test")
	}
	wait := d.floodEvents(goesOn)
	d.waitDone(ends)
	until(t, "some of the second job is proved", func() bool { return d.record(goesOn).VerifiedCount() > 0 })
	_, err := d.shows(patience, []int{exitDone}, "drain", "n1", "--cordon")
	d.check(err)
	wait()
	t.Logf("%d events went out in %s", watchedEvents, time.Since(frozen))
	time.Sleep(time.Until(frozen.Add(d.of(time.Minute))))
	d.wantUnhurried(perPartition)
	first.signal(syscall.SIGCONT)
	second.signal(syscall.SIGCONT)
	thawed := time.Now()
	untilWithin(t, 10*time.Second, "watchers and jobs agree", func() bool {
		shown := d.provedShown(goesOn)
		return provedSaid(first) == "8" && provedSaid(second) == shown && shown != "0" && shown != "16"
	})
	t.Logf("all agree %s after thawing", time.Since(thawed))
	if after := sockets(second); slices.Equal(before, after) {
		t.Errorf("the watcher was not cut off: %v", after)
	}
	first.endsWell()
	_, err = d.shows(patience, []int{exitDone}, "drain", "n1", "--undo")
	d.check(err)
	d.waitDone()
	second.endsWell()
	d.done(2 * time.Minute)
}

// upTo are as many seeds.
func upTo(count uint64) (seeds []uint64) {
	for i := range count {
		seeds = append(seeds, 1000*count+i)
	}
	return seeds
}

// watcher watches a job, and has said so.
func (d *drill) watcher(j *submitted) *process {
	d.t.Helper()
	w := start(d.t, "watcher of "+string(j.id), d.command("watch", string(j.id))...)
	until(d.t, "the watcher says how far the job is", func() bool { return provedSaid(w) != "" })
	return w
}

// wantUnhurried says that nothing was begun twice, and that no device waited for longer than a partition takes.
func (d *drill) wantUnhurried(most time.Duration) {
	d.t.Helper()
	longest := time.Duration(0)
	for k, j := range d.jobs {
		for i, p := range d.record(j).Partitions {
			if len(p.Attempts) > 1 {
				d.t.Errorf("partition %d of job %s was begun again: %+v", i, j.id, p.Attempts)
			}
			if p.Stage == job.Verified && k+i > 0 {
				longest = max(longest, time.Duration(p.Last().Seconds["device_idle"]*float64(time.Second)))
			}
		}
	}
	d.t.Logf("the device was idle for at most %s", longest)
	if longest > most {
		d.t.Errorf("the device was idle for %s, a partition takes %s", longest, most)
	}
}

// floodEvents has events of a job go out, each stored; wait returns when all have.
func (d *drill) floodEvents(j *submitted) (wait func()) {
	d.t.Helper()
	partition := 0
	data, err := wire.Encode(&wire.Event{
		Job: j.id, Tenant: job.MainTenant, What: wire.EventPartition, At: time.Now(), State: job.Active,
		Partition: &partition, Stage: job.Waiting, Node: "n1", Device: "cpu",
		Fault: &fault.Report{Kind: fault.Transient, Message: strings.Repeat("x", watchedEventBytes)},
	})
	d.check(err)
	var sent atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for n := sent.Add(1); n <= watchedEvents && !d.t.Failed(); n = sent.Add(1) {
				m := bus.Message{
					Subject: wire.EventSubject(job.MainTenant, j.id, wire.EventPartition), ID: fmt.Sprintf("flood-%d", n), Data: data,
				}
				if _, err := d.bus.Publish(d.t.Context(), m); err != nil {
					d.t.Errorf("publish event %d: %v", n, err)
				}
			}
		})
	}
	return all.Wait
}

var provedText = regexp.MustCompile(`([0-9]+) of [0-9]+ proved`)

// provedSaid is how many partitions a watcher said last to be proved.
func provedSaid(w *process) string {
	all := provedText.FindAllStringSubmatch(w.log.String(), -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

// provedShown is how many partitions are proved by `proofrack job`.
func (d *drill) provedShown(j *submitted) string {
	d.t.Helper()
	out, err := d.shows(10*time.Second, []int{exitDone}, "job", string(j.id))
	d.check(err)
	var shown struct{ Record *job.Record }
	d.check(json.Unmarshal(out, &shown))
	if shown.Record == nil {
		d.t.Fatalf("no record in %s", out)
	}
	return fmt.Sprint(shown.Record.VerifiedCount())
}

// sockets are the connections of a process.
func sockets(p *process) (names []string) {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.pid()))
	for _, link := range links {
		if name, err := os.Readlink(link); err == nil && strings.HasPrefix(name, "socket:") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
