//go:build long && bench

package e2e_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// freedWatch sees from outside when a node says that bytes are free, and when the next task of the node is published.
type freedWatch struct {
	mu     sync.Mutex
	events []freedEvent
	known  map[job.Attempt]bool
}

type freedEvent struct {
	at   time.Time
	what string
}

// What is seen of an attempt.
const (
	seenPublished = "published"
	seenSealed    = "sealed"
	seenFreed     = "freed"
)

func (w *freedWatch) report(m bus.Message) {
	var r wire.Report
	switch {
	case wire.Decode(m.Data, &r) != nil:
	case r.Freed:
		w.note(seenFreed)
	case r.Stage == job.Sealed:
		w.note(seenSealed)
	}
}

func (w *freedWatch) task(m bus.Message) {
	var t wire.SynthTask
	if wire.Decode(m.Data, &t) != nil {
		return
	}
	w.mu.Lock()
	again := w.known[t.Attempt]
	w.known[t.Attempt] = true
	w.mu.Unlock()
	if !again {
		w.note(seenPublished)
	}
}

func (w *freedWatch) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, freedEvent{time.Now(), what})
}

// times are the times from each "bytes freed" on a full node to the next publication, while something waits. A node is
// full when it has as many attempts as at most of these ends (two programs tell, so one more may be seen for a moment);
// the next one then waits for bytes and for nothing else, unless one is not synthesized yet: then the synthesis slot
// may be what it waits for, and the time does not count.
func (w *freedWatch) times(t *testing.T) []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	held, unsealed, ends := 0, 0, map[int]int{}
	for _, e := range w.events {
		switch e.what {
		case seenPublished:
			held++
		case seenFreed:
			ends[held]++
			held--
		}
	}
	full := 0
	for n, count := range ends {
		if count > ends[full] {
			full = n
		}
	}
	held = 0
	var out []time.Duration
	for i, e := range w.events {
		switch e.what {
		case seenPublished:
			held++
			unsealed++
		case seenSealed:
			unsealed--
		case seenFreed:
			next := slices.IndexFunc(w.events[i:], func(e freedEvent) bool { return e.what == seenPublished })
			if held >= full && unsealed == 0 && next >= 0 {
				out = append(out, w.events[i+next].at.Sub(e.at))
			}
			held--
		}
	}
	t.Logf("%d partitions fit; %d times", full, len(out))
	return out
}

// A device that takes a second per partition, segments of half a gigabyte, a node that holds eight of them and far more
// that waits: the gap of the device between partitions, and how long freed bytes lie idle.
func TestFigureDeviceGapAndFreedBytes(t *testing.T) {
	r := newRack(t)
	r.startShipped()
	n := r.addNode("n1")
	n.workShipped(deviceSecond, []string{"synth.pad_bytes=512MiB", "memory.shm_max=4200MiB"},
		[]string{"prove.ahead=6", "memory.shm_max=4200MiB"})
	r.ready()
	w := &freedWatch{known: map[job.Attempt]bool{}}
	for subject, handle := range map[string]func(bus.Message){wire.AllReports: w.report, wire.SynthSubject("n1"): w.task} {
		stop, err := r.bus.Subscribe(subject, handle)
		r.check(err)
		defer stop()
	}
	r.submitMany(11)
	r.ended(3 * time.Minute)
	gaps := r.deviceGaps()
	const warm = 9 // the first ones fill the pool with fresh pages
	gaps = gaps[warm:]
	t.Logf("%d gaps: median %s, the longest %v", len(gaps), quantile(gaps, 0.5), gaps[max(0, len(gaps)-8):])
	p99 := milliseconds(quantile(gaps, 0.99))
	figure(t, "device gap between partitions of 1 s, 0.5 GiB segments, p99", p99, "ms", "<= 20 ms", p99 <= 20)
	r.showSeconds()
	times := w.times(t)
	if len(times) < len(gaps)/2 {
		t.Fatalf("the node was full at %d ends only", len(times))
	}
	t.Logf("bytes freed to published: median %s, the longest %v", quantile(times, 0.5), times[max(0, len(times)-8):])
	p99 = milliseconds(quantile(times, 0.99))
	figure(t, "bytes freed to next partition published, p99", p99, "ms", "<= 50 ms", p99 <= 50)
	r.checkQuietLater()
}

// The leader is killed, Redis is away for ten seconds, NATS is away for ten seconds: work ahead covers it. A partition
// takes two seconds, and what is ahead is what coordinators book by default.
func TestFigureOutages(t *testing.T) {
	const (
		away      = 10 * time.Second
		partition = 2 * time.Second
	)
	r := newRack(t)
	leader := r.startShipped()
	n := r.addNode("n1")
	n.workShipped(fmt.Sprintf(`{"start_time_ns":%d,"finish_time_ns":200000000}`, partition),
		[]string{"synth.pad_bytes=1MiB"}, []string{"prove.ahead=16"})
	r.ready()
	r.startShipped()
	r.submitMany(4)
	phase := func(name string, fault func()) {
		segments := 0
		untilWithin(t, time.Minute, "work is sealed ahead", func() bool {
			segments = len(entries(n, "seg"))
			return segments >= 8 // one of them is proved, one may be on its way
		})
		t.Logf("%s at %s: %d segments", name, time.Now().UTC().Format("15:04:05.000"), segments)
		fault()
	}
	phase("leader is killed", leader.kill)
	time.Sleep(away / 2) // the other one leads within a lease
	phase("Redis goes", func() { r.redis.kill(); time.Sleep(away); r.redis.start(t) })
	phase("NATS goes", func() { r.nats.kill(); time.Sleep(away); r.nats.start(t) })
	r.ended(3 * time.Minute)
	gaps := r.deviceGaps()
	most := quantile(gaps, 1).Seconds()
	t.Logf("%d gaps: median %s, most %.3f s; last %v", len(gaps), quantile(gaps, 0.5), most, gaps[len(gaps)-4:])
	figure(t, "longest idle time of a device, leader killed, Redis and NATS away for 10 s each", most, "s",
		"<= 2 s, a partition", most <= partition.Seconds())
}
