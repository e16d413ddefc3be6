package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// One waiter for 57 units among waiters for 14 that never stop coming, on a pool of 100. The bound on grants that go
// before it: 7 of 14 fit at once (⌊100/14⌋), each for a time D. Somebody passes it by for the first time at most D
// after it came, when one of the 7 ends; one ageing time A later, and at most one tick T, it pins the node. Until then
// each of the 7 places is granted anew at most ⌊(D+A+T)/D⌋+1 times; from then on never, since a small one takes bytes
// of the pool in which the large one lacks some. Those that run end within D. So: at most 7·(⌊(D+A+T)/D⌋+1) grants,
// and D+A+T+D of waiting.
func TestLargeWaiterAmongSmallOnesIsServedWithinABoundedNumberOfGrants(t *testing.T) {
	t.Parallel()
	const tick = time.Second
	for name, test := range map[string]struct{ ageing, takes time.Duration }{
		"short ones":            {time.Minute, 10 * time.Second},
		"longer than ageing":    {time.Minute, 150 * time.Second},
		"an ageing of a moment": {tick, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			grantsMost := 7 * (int((test.takes+test.ageing+tick)/test.takes) + 1)
			waitMost := test.takes + test.ageing + tick + test.takes
			grants, waited, ok := amongSmallOnes(t, test.ageing, test.takes, tick, 2*waitMost)
			if !ok || grants > grantsMost || waited > waitMost {
				t.Errorf("served: %v, after %d grants of at most %d and %s of at most %s", ok, grants, grantsMost, waited,
					waitMost)
			}
			if grants == 0 {
				t.Error("nobody passed it by: the test shows nothing")
			}
			if _, _, ok := amongSmallOnes(t, 1000*time.Hour, test.takes, tick, 2*waitMost); ok {
				t.Error("it would have been served without ageing: the test shows nothing")
			}
		})
	}
}

func amongSmallOnes(
	t *testing.T, ageing, takes, tick, limit time.Duration,
) (grants int, waited time.Duration, ok bool) {
	cfg := scheduler.DefaultConfig()
	cfg.Ageing, cfg.GuessDefault, cfg.WorkAhead = ageing, takes, 100*takes
	w := newWorld(t, cfg)
	w.addNode(nodeView("n1", 100, 100, map[string]scheduler.CircuitView{
		"small": ready(kind(14, 0, 0, "small")), "large": ready(kind(57, 0, 0, "large")),
	}, "gpu0"))
	ends := map[job.Attempt]time.Time{}
	served := time.Time{}
	w.onAdmit = func(d *scheduler.Admit) {
		ends[d.Attempt] = w.now.Add(takes)
		if d.Circuit == "large" {
			served = w.now
		} else if grants++; served.IsZero() {
			return
		}
	}
	jobs := 0
	addSmall := func() {
		jobs++
		w.addJob(job.ID(fmt.Sprintf("s%06d", jobs)), "small", 1, 0)
	}
	for i := range 7 { // they end one after the other, so that 57 are never free by chance
		addSmall()
		w.now = w.now.Add(takes / 7 * time.Duration(min(i, 1)))
	}
	w.addJob("large", "large", 1, 0)
	begin := w.now
	grants = 0
	for served.IsZero() && w.now.Sub(begin) < limit {
		addSmall()
		for _, a := range slices.SortedFunc(maps.Keys(ends), func(a, b job.Attempt) int {
			return slices.Compare([]byte(a.Job), []byte(b.Job))
		}) {
			if !w.now.Before(ends[a]) {
				delete(ends, a)
				w.finish(scheduler.Ended{Attempt: a, Outcome: job.OutcomeOK, Device: takes}, job.DefaultPolicy())
				w.free(a, "n1")
			}
		}
		w.tick(tick)
	}
	return grants, served.Sub(begin), !served.IsZero()
}

// fairWork is a random load on one node, and what it takes.
type fairWork struct {
	circuits      map[string]scheduler.CircuitView
	synth, device map[string]time.Duration
	quotas        map[job.Tenant]scheduler.Quota
	ram           int
	slots         int
	devices       []string
	jobs          []fairJob
}

type fairJob struct {
	at      time.Duration
	id      job.ID
	circuit string
	tenant  job.Tenant
	// never tells that its quota is smaller than one of its partitions.
	never bool
}

func drawFair(t *rapid.T) *fairWork {
	f := &fairWork{
		circuits: map[string]scheduler.CircuitView{}, synth: map[string]time.Duration{}, device: map[string]time.Duration{},
		quotas: map[job.Tenant]scheduler.Quota{},
		ram:    rapid.IntRange(12, 30).Draw(t, "ram"), slots: rapid.IntRange(1, 6).Draw(t, "slots"),
		devices: []string{"gpu0", "gpu1", "gpu2"}[:rapid.IntRange(1, 3).Draw(t, "devices")],
	}
	rams := map[string]int{}
	for _, name := range randomKinds {
		rams[name] = rapid.IntRange(1, 12).Draw(t, "need")
		f.circuits[name] = ready(kind(float64(rams[name]), float64(rapid.IntRange(0, 6).Draw(t, "shm")), 0, name))
		f.synth[name] = time.Duration(rapid.IntRange(1, 9).Draw(t, "synth")) * time.Second
		f.device[name] = time.Duration(rapid.IntRange(1, 20).Draw(t, "device")) * time.Second
	}
	tenants := []job.Tenant{"main", "alice", "bob"}
	for _, name := range tenants[1:] {
		q := scheduler.Quota{Partitions: rapid.IntRange(0, 4).Draw(t, "quota")}
		q.Bytes = gib(float64(rapid.IntRange(0, 20).Draw(t, "quota bytes")))
		f.quotas[name] = q
	}
	at := time.Duration(0)
	for i := range rapid.IntRange(5, 60).Draw(t, "jobs") {
		at += time.Duration(rapid.IntRange(0, 6).Draw(t, "pause")) * time.Second
		j := fairJob{
			at: at, id: job.ID(fmt.Sprintf("j%03d", i)), circuit: rapid.SampledFrom(randomKinds).Draw(t, "circuit"),
			tenant: rapid.SampledFrom(tenants).Draw(t, "tenant"),
		}
		q := f.quotas[j.tenant].Bytes
		j.never = q > 0 && gib(float64(rams[j.circuit])) > q
		f.jobs = append(f.jobs, j)
	}
	return f
}

// fairRun is one run of a load. With alone set everybody behind the first waiter that pins the node is taken away.
type fairRun struct {
	*rackSim
	work  *fairWork
	t     *rapid.T
	alone bool
	// pinned is the first waiter that pinned the node.
	pinned job.ID
	// lost tells that it lost the pin before it went, to its tenant's quota or to an older waiter.
	lost bool
}

func (f *fairWork) run(t *rapid.T, alone bool) *fairRun {
	cfg := scheduler.DefaultConfig()
	cfg.Ageing, cfg.GuessDefault, cfg.Quotas = 15*time.Second, 8*time.Second, f.quotas
	s := newRackSim(t, cfg, f.slots)
	s.step = time.Second
	s.synth = func(c string) time.Duration { return f.synth[c] }
	s.device = func(c string) time.Duration { return f.device[c] }
	r := &fairRun{rackSim: s, work: f, t: t, alone: alone}
	s.addNode(nodeView("n1", float64(f.ram), f.slots, f.circuits, f.devices...))
	next := 0
	for round := 0; ; round++ {
		for next < len(f.jobs) && s.now.Sub(epoch) >= f.jobs[next].at {
			if j := f.jobs[next]; r.pinned == "" || !alone {
				s.addJobOf(j.tenant, 0, j.id, j.circuit, 1, 0)
			}
			next++
		}
		s.advance()
		r.checkQuotas()
		r.notePin()
		if r.done(next) {
			return r
		}
		if round > 10000 {
			t.Fatalf("it never ends: %+v\n%s", s.core.Stats(), s.take())
		}
	}
}

func (r *fairRun) notePin() {
	a, ok := r.core.Pinned("n1")
	if r.pinned != "" {
		waits := r.records[r.pinned].Partitions[0].Stage == job.Waiting
		r.lost = r.lost || waits && (!ok || a.Job != r.pinned)
		return
	}
	if !ok {
		return
	}
	r.pinned = a.Job
	if !r.alone {
		return
	}
	for _, j := range r.work.jobs {
		if rec := r.records[j.id]; rec != nil && j.id > a.Job && rec.Partitions[0].Stage == job.Waiting {
			if err := rec.Cancel(nil, r.now); err != nil {
				r.t.Fatal(err)
			}
			r.seen(j.id)
		}
	}
}

// done tells that all jobs that can have ended; those that never can say why.
func (r *fairRun) done(added int) bool {
	if added < len(r.work.jobs) {
		return false
	}
	for _, j := range r.work.jobs {
		rec := r.records[j.id]
		if rec == nil || rec.State != job.Active {
			continue
		}
		if !j.never {
			return false
		}
		if why := r.core.Why(j.id); len(why) != 1 || why[0].Code != scheduler.QuotaCode {
			r.t.Fatalf("job %s is larger than its tenant's quota: %+v", j.id, why)
		}
	}
	return true
}

// checkQuotas adds up what the ledger has for each tenant.
func (r *fairRun) checkQuotas() {
	partitions, bytes := map[job.Tenant]int{}, map[job.Tenant]bytesize.Bytes{}
	for _, n := range r.nodes {
		for a, h := range n.holdings {
			tenant := r.records[a.Job].Tenant
			partitions[tenant]++
			bytes[tenant] += h.Amounts[ledger.PoolRAM]
		}
	}
	for tenant, q := range r.work.quotas {
		if q.Partitions > 0 && partitions[tenant] > q.Partitions || q.Bytes > 0 && bytes[tenant] > q.Bytes {
			r.t.Fatalf("tenant %s has %d partitions with %s in flight, its quota is %+v", tenant, partitions[tenant],
				bytes[tenant], q)
		}
	}
}

// With random work and quotas on a busy node: nobody waits for ever, no tenant passes its quota, and the first waiter
// that pins the node goes at the latest when it would go if nobody behind it were let in.
func TestFairWaiting(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		work := drawFair(t)
		with := work.run(t, false)
		if with.pinned == "" || with.lost {
			return
		}
		without := work.run(t, true)
		first := job.Attempt{Job: with.pinned, Fence: 1}
		if without.pinned != with.pinned {
			t.Fatalf("the runs differ before the pin: %s and %s", with.pinned, without.pinned)
		}
		if a, b := with.startedAt[first], without.startedAt[first]; a.After(b) {
			t.Fatalf("job %s goes %s later since others were let in behind it", first.Job, a.Sub(b))
		}
	})
}
