//go:build long

package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// historyMinutesEnv is how many minutes of faults there are, historySeedEnv what they are drawn from.
const (
	historyMinutesEnv = "HISTORY_MINUTES"
	historySeedEnv    = "HISTORY_SEED"
)

// lan is a bridge with namespaces on it, each with one address.
type lan struct {
	t      *testing.T
	bridge string
	count  int
}

func (l *lan) run(command ...string) {
	l.t.Helper()
	if out, err := exec.Command("ip", command...).CombinedOutput(); err != nil {
		l.t.Fatalf("ip %v: %v\n%s", command, err, out)
	}
}

func newLAN(t *testing.T) *lan {
	t.Helper()
	l := &lan{t: t, bridge: fmt.Sprintf("rk%d", os.Getpid())}
	l.run("link", "add", l.bridge, "type", "bridge")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", l.bridge).Run() })
	l.run("addr", "add", "10.214.0.254/24", "dev", l.bridge)
	l.run("link", "set", l.bridge, "up")
	return l
}

// host is a namespace on a lan.
type host struct {
	lan                  *lan
	space, link, address string
}

func (l *lan) add(name string) *host {
	l.t.Helper()
	l.count++
	h := &host{
		lan: l, space: fmt.Sprintf("%s-%s", l.bridge, name), link: fmt.Sprintf("%sv%d", l.bridge, l.count),
		address: fmt.Sprintf("10.214.0.%d", l.count),
	}
	l.run("netns", "add", h.space)
	l.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", h.space).Run() })
	l.run("link", "add", h.link, "type", "veth", "peer", "name", "eth0", "netns", h.space)
	l.run("link", "set", h.link, "master", l.bridge, "up")
	l.run("-n", h.space, "addr", "add", h.address+"/24", "dev", "eth0")
	l.run("-n", h.space, "link", "set", "eth0", "up")
	l.run("-n", h.space, "link", "set", "lo", "up")
	return h
}

func (h *host) within(command ...string) []string {
	return append([]string{"ip", "netns", "exec", h.space}, command...)
}

// cut takes the host off the lan until mend.
func (h *host) cut()  { h.lan.run("link", "set", h.link, "down") }
func (h *host) mend() { h.lan.run("link", "set", h.link, "up") }

// historyFault is one that the history brings about and ends.
type historyFault struct {
	name string
	do   func()
	undo func()
}

// faultsOf are those of a process on a host: a cut, a pause and a kill with a restart.
func faultsOf(name string, h *host, now func() *process, start func()) []historyFault {
	all := []historyFault{
		{"pause " + name, func() { now().signal(syscall.SIGSTOP) }, func() { now().signal(syscall.SIGCONT) }},
		{"kill " + name, func() { now().kill() }, start},
	}
	if h != nil {
		all = append(all, historyFault{"cut " + name, h.cut, h.mend})
	}
	return all
}

// Three NATS servers and Redis on hosts of their own, two coordinators, two nodes. For ten minutes one of the three
// servers and one thing of the rest are cut off, stand still or are killed at any time, while jobs come without
// end. Afterwards each job that was accepted is done, its proof holds, no partition was finished twice, and a key gives
// the job that it gave.
func TestLongHistoryOfAcceptedJobs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces and must be run as root")
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(historySeedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d", historySeedEnv, seed)
	minutes := 10.0
	if text := os.Getenv(historyMinutesEnv); text != "" {
		var err error
		if minutes, err = strconv.ParseFloat(text, 64); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(seed, 1))
	r, servers, others := historyRack(t)
	h := &history{r: r}
	accepting, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { h.submit(accepting) })
	counts := map[string]int{}
	for until := time.Now().Add(time.Duration(minutes * float64(time.Minute))); time.Now().Before(until); {
		var struck []historyFault
		if random.IntN(3) > 0 {
			struck = append(struck, servers[random.IntN(len(servers))])
		}
		if random.IntN(3) > 0 {
			struck = append(struck, others[random.IntN(len(others))])
		}
		for _, f := range struck {
			counts[strings.SplitN(f.name, " ", 2)[0]]++
			t.Logf("%s: %s", time.Now().UTC().Format("15:04:05.000"), f.name)
			f.do()
		}
		time.Sleep(time.Duration(500+random.IntN(5500)) * time.Millisecond)
		for _, f := range struck {
			f.undo()
		}
		time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
	}
	stop()
	wg.Wait()
	t.Logf("%d jobs were accepted, %d asks were not answered; faults %v", len(h.keys), h.failed, counts)
	if len(h.keys) < int(5*minutes) {
		t.Errorf("%d jobs were accepted in %.1f minutes", len(h.keys), minutes)
	}
	h.check()
}

// historyRack starts all, and gives the faults of the NATS servers and those of everything else.
func historyRack(t *testing.T) (r *rack, servers, others []historyFault) {
	l := newLAN(t)
	r = &rack{t: t}
	r.equip()
	hosts := []*host{l.add("nats1"), l.add("nats2"), l.add("nats3")}
	var routes []string
	r.nats = &natsServer{listen: hosts[0].address + ":4222"}
	for _, h := range hosts {
		routes = append(routes, "nats-route://"+h.address+":6222")
		r.nats.cluster = append(r.nats.cluster, "nats://"+h.address+":4222")
	}
	processes := make([]*process, len(hosts))
	for i, h := range hosts {
		dir, name := t.TempDir(), fmt.Sprintf("nats-%d", i+1)
		begin := func() {
			processes[i] = start(t, name, h.within(built.nats, "-hosts", "-dir", dir, "-listen", h.address+":4222",
				"-name", name, "-cluster", h.address+":6222", "-routes", strings.Join(routes, ","))...)
		}
		begin()
		servers = append(servers, faultsOf(name, h, func() *process { return processes[i] }, begin)...)
	}
	for i, h := range hosts {
		processes[i].await(t, h.address+":4222")
	}
	redis := l.add("redis")
	r.redis = &redisServer{dir: t.TempDir(), listen: redis.address + ":6379"}
	beginRedis := func() {
		r.redis.process = start(t, "redis", redis.within("redis-server", "--bind", redis.address, "--protected-mode", "no",
			"--port", "6379", "--dir", r.redis.dir, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec",
			"--maxmemory", "64mb", "--maxmemory-policy", "noeviction")...)
	}
	beginRedis()
	r.redis.await(t, r.redis.listen)
	others = append(others, faultsOf("redis", redis, func() *process { return r.redis.process }, beginRedis)...)
	r.connect()
	for i := range 2 {
		begin := func() *process {
			return r.startCoordinator("streams.replicas=3", "keep.orphan_age="+historyOrphanAge.String())
		}
		p := begin()
		others = append(others, faultsOf(fmt.Sprintf("coordinator %d", i+1), nil, func() *process { return p },
			func() { p = begin() })...)
	}
	for _, name := range []job.Node{"n1", "n2"} {
		n := r.addNode(name)
		slow := simulated(300*time.Millisecond, 50*time.Millisecond)
		n.startSynth()
		n.startGPU(slow...)
		others = append(others, faultsOf("synth "+string(name), nil, func() *process { return n.synth },
			func() { n.startSynth() })...)
		others = append(others, faultsOf("gpu "+string(name), nil, func() *process { return n.gpu },
			func() { n.startGPU(slow...) })...)
	}
	r.ready()
	return r, servers, others
}

// history is what a client was told.
type history struct {
	r      *rack
	mu     sync.Mutex
	keys   []string
	failed int
}

// historyOrphanAge is how old slices must be to count as nobody's: many times what an intake takes.
const historyOrphanAge = 90 * time.Second

// historyOpen bounds the jobs that have not ended; submitting waits for them.
const historyOpen = 20

// submit has jobs accepted, one after another, each under its own key until it is.
func (h *history) submit(ctx context.Context) {
	last := ""
	for number := uint64(1); ctx.Err() == nil; number++ {
		key := fmt.Sprintf("sector %d", number)
		for {
			asking, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			s, err := h.r.client.Submit(asking, request(key, number, 3*number, 3*number+1))
			cancel()
			if err == nil {
				h.mu.Lock()
				h.keys = append(h.keys, key)
				h.r.accepted(s.Job, 3*number, 3*number+1)
				h.mu.Unlock()
				break
			}
			h.failed++
			if text := err.Error(); text != last {
				h.r.t.Logf("%s: %s is not accepted: %s", time.Now().UTC().Format("15:04:05.000"), key, text)
				last = text
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
		pause := 300 * time.Millisecond
		if h.open(ctx) > historyOpen {
			pause = 3 * time.Second
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// open counts the last jobs that have not ended, as far as the rack answers.
func (h *history) open(ctx context.Context) (count int) {
	for i := max(0, len(h.r.jobs)-2*historyOpen); i < len(h.r.jobs); i++ {
		asking, cancel := context.WithTimeout(ctx, time.Second)
		s, err := h.r.client.Status(asking, h.r.jobs[i].id)
		cancel()
		if err != nil {
			return historyOpen + 1
		}
		h.r.watch.saw(s.Record)
		if !s.Record.State.Ended() {
			count++
		}
	}
	return count
}

// check is what has to hold when all faults are over.
func (h *history) check() {
	r := h.r
	r.t.Helper()
	for i, j := range r.jobs {
		record := r.waitEnd(j)
		if record.State != job.Done {
			r.t.Errorf("job %s is %s: %+v\n%+v", j.id, record.State, record.Fault, record.Partitions)
			continue
		}
		for k := range record.Partitions {
			finished := 0
			for _, a := range record.Partitions[k].Attempts {
				if a.Outcome == job.OutcomeOK {
					finished++
				}
			}
			if finished != 1 {
				r.t.Errorf("partition %d of job %s was finished %d times", k, j.id, finished)
			}
		}
		number := uint64(i + 1)
		var s *client.Submitted
		var err error
		for range 60 { // a tenant may ask so often in a minute, and the last server has just come back
			s, err = r.client.Submit(r.t.Context(), request(h.keys[i], number, 3*number, 3*number+1))
			if kind := fault.KindOf(err); kind != fault.Exhausted && kind != fault.Transient {
				break
			}
			time.Sleep(time.Second)
		}
		if err != nil || s.Job != j.id || !s.Existing {
			r.t.Errorf("key %q gave job %s and gives %+v, %v", h.keys[i], j.id, s, err)
		}
	}
	// What intakes left that were broken off goes when it is of age.
	left := ""
	untilWithin(r.t, historyOrphanAge+2*patience, "slices without a job are swept", func() bool {
		if now := r.objects(wire.ObjectsSlices, nil); now != left {
			left = now
			r.t.Logf("%s: left in %s:%s", time.Now().UTC().Format("15:04:05.000"), wire.ObjectsSlices, left)
		}
		return left == ""
	})
	r.checkQuiet()
}
