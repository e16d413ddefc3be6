package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/redisledger"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

// timeScale divides the start values of design section 4. Heartbeats that are seconds late on a crowded machine must
// not cost an attempt.
const timeScale = 3

// Timers of all tests, and how long a test waits for what should take about a lease. Sweeps are more frequent, since
// every test waits for one.
const (
	lease       = 15 * time.Second / timeScale
	leaderLease = 4 * time.Second
	patience    = 2 * time.Minute
)

// shared are settings of all programs; coordinating and working those of coordinators and of workers.
func shared() []string {
	return []string{
		"nats.reconnect_wait=20ms", "nats.reconnect_max=300ms", "nats.pull_wait=500ms", "nats.guard_interval=1s",
		"nats.ping_interval=1s", "http.listen=", "logs.level=debug", "logs.format=json",
	}
}

func coordinating() []string {
	return []string{
		"times.heartbeat=500ms", "times.leader_lease=" + leaderLease.String(),
		"times.tick=50ms", "times.sweep=3s", "times.result_wait=2s", "times.call=2s", "attempts.backoff_min=50ms",
		"attempts.backoff_max=500ms", "attempts.hand_back_pause=100ms", "schedule.ageing=6s", "schedule.guess_default=200ms",
	}
}

// working has bounds of a stall that are longer than any test holds work at a hook.
func working() []string {
	return []string{
		"worker.heartbeat=500ms", "worker.ack_wait=6s", "worker.keep_every=1s", "worker.stall_max=5m",
		"worker.retry_max=500ms", "worker.settle_max=500ms", "worker.fence_max=300ms",
		"spill.sweep_every=1s", "spill.pool_idle=2s", "spill.seal_wait=1s",
	}
}

// Segments of nodes whose room is bounded. A toy segment is a little larger than its pad.
const (
	roomPad     = bytesize.MiB
	roomSegment = roomPad + bytesize.MiB/4
)

// node is one host: two workers with a spill folder of their own.
type node struct {
	rack       *rack
	name       job.Node
	spill      string
	synth, gpu *process
}

// rack is everything: servers, coordinators and nodes. hooks is the folder for marks of test hooks.
type rack struct {
	t            *testing.T
	nats         *natsServer
	redis        *redisServer
	coordinators []*process
	nodes        []*node
	hooks        string
	lease        time.Duration // that coordinators have
	programs     programs
	params       string // folder of parameters
	circuits     string // that nodes take, separated by commas
	room         int    // how many segments the shared memory of each node holds, 0 for what the host has
	bus          *natsbus.Bus
	client       *client.Client
	jobs         []*submitted
	watch        *watch
}

// submitted is a job of the test, with its circuit and what its proofs are to prove, by partition. Held is the
// partition that a hook holds in mid-proof, where one does.
type submitted struct {
	held    int
	id      job.ID
	circuit circuit.Circuit
	public  [][]fr.Element
}

// newRack starts servers only.
func newRack(t *testing.T) *rack {
	t.Helper()
	r := &rack{t: t, nats: startNATS(t), redis: startRedis(t)}
	r.equip()
	r.connect()
	return r
}

// equip gives the rack what is no server: hooks, and the toy circuit.
func (r *rack) equip() {
	r.hooks, r.params, r.circuits = r.t.TempDir(), built.params, toy.Circuit().ID()
	r.programs, r.lease = built.programs, lease
}

// calm has a rack give nothing up although a crowded machine lets workers wait: for tests in which no lease ends.
func (r *rack) calm() { r.lease = time.Minute }

// connect connects the test itself, and has it watch the rack.
func (r *rack) connect() {
	r.t.Helper()
	r.dial()
	r.watchAll()
}

// dial connects the test itself.
func (r *rack) dial() {
	r.t.Helper()
	r.watch = newWatch()
	for _, n := range r.nodes {
		r.watch.add(n)
	}
	config := natsbus.DefaultConfig()
	config.URLs, config.ReconnectMax = strings.Split(r.nats.url(), ","), 300*time.Millisecond
	var err error
	r.bus, err = natsbus.Dial(r.t.Context(), config, natsbus.Options{})
	r.check(err)
	r.t.Cleanup(r.bus.Close)
	r.client = client.New(r.bus, job.MainTenant)
}

// full is a rack with one coordinator and nodes of the given names, ready and calm.
func full(t *testing.T, names ...job.Node) *rack {
	t.Helper()
	r := newRack(t)
	r.calm()
	r.add(names...)
	return r
}

// add starts a coordinator and nodes of the given names, and waits until all is ready.
func (r *rack) add(names ...job.Node) {
	r.t.Helper()
	r.startCoordinator()
	for _, name := range names {
		n := r.addNode(name)
		n.startSynth()
		n.startGPU()
	}
	r.ready()
}

func (r *rack) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// hooked gives the settings that set hooks.
func (r *rack) hooked(hooks ...string) []string {
	return []string{"test.folder=" + r.hooks, "test.hooks=" + strings.Join(hooks, ",")}
}

func flags(groups ...[]string) []string {
	var args []string
	for _, s := range slices.Concat(groups...) {
		args = append(args, "--set", s)
	}
	return args
}

func (r *rack) startCoordinator(settings ...string) *process {
	r.t.Helper()
	name := fmt.Sprintf("coordinator %d", len(r.coordinators)+1)
	p := start(r.t, name, append([]string{r.programs.coordinator}, flags(shared(), coordinating(), []string{
		"nats.urls=" + r.nats.url(), "ledger.address=" + r.redis.listen, "params.dir=" + r.params,
		"times.lease=" + r.lease.String(), "params.digest_cache=" + filepath.Join(r.hooks, "digests.json"),
	}, settings)...)...)
	r.coordinators = append(r.coordinators, p)
	return p
}

func (r *rack) addNode(name job.Node) *node {
	r.t.Helper()
	spill, err := os.MkdirTemp("/dev/shm", "proofrack-e2e-")
	r.check(err)
	r.t.Cleanup(func() { os.RemoveAll(spill) })
	n := &node{rack: r, name: name, spill: spill}
	r.nodes = append(r.nodes, n)
	if r.watch != nil {
		r.watch.add(n)
	}
	return n
}

func (n *node) common() []string {
	settings := []string{
		"nats.urls=" + n.rack.nats.url(), "node=" + string(n.name), "spill.path=" + n.spill, "memory.claims=" + n.claims(),
	}
	if n.rack.room > 0 {
		settings = append(settings, fmt.Sprintf("memory.shm_max=%d", n.shm()))
	}
	return settings
}

// shm is how much shared memory the node may hold, 0 when that is not bounded.
func (n *node) shm() bytesize.Bytes { return bytesize.Bytes(n.rack.room) * roomSegment }

// claims is where the node's agent claims memory: nodes of the test stand for hosts of their own.
func (n *node) claims() string { return filepath.Join(n.spill, "claims") }

func (n *node) startSynth(settings ...string) *process {
	n.rack.t.Helper()
	if n.rack.room > 0 {
		settings = append([]string{fmt.Sprintf("synth.pad_bytes=%d", roomPad)}, settings...)
	}
	n.synth = start(n.rack.t, "synth "+string(n.name), append([]string{n.rack.programs.synth}, flags(shared(), working(),
		n.common(),
		[]string{"synth.circuits=" + n.rack.circuits, "synth.slots=1", "synth.scratch_bytes=1MiB"}, settings)...)...)
	return n.synth
}

func (n *node) startGPU(settings ...string) *process {
	n.rack.t.Helper()
	n.gpu = start(n.rack.t, "gpu "+string(n.name), append([]string{n.rack.programs.gpu}, flags(shared(), working(),
		n.common(),
		[]string{
			"prove.devices=cpu", "prove.circuits=" + n.rack.circuits, "prove.params=" + n.rack.params,
			"prove.cache=" + filepath.Join(n.spill, "cache"), "prove.workers=1", "prove.poll=200ms",
			"engine.pause_min=50ms", "engine.stall_max=5m", "engine.start_max=1m",
		}, settings)...)...)
	return n.gpu
}

// until polls until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	untilWithin(t, patience, what, holds)
}

func untilWithin(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// view is the rack as its leader sees it; nil while none answers.
func (r *rack) view() *wire.NodesReply {
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Second)
	defer cancel()
	var reply wire.NodesReply
	if client.Ask(ctx, r.bus, wire.AdminSubject(wire.AdminNodes), &wire.Empty{}, &reply, 50*time.Millisecond) != nil {
		return nil
	}
	return &reply
}

// ready waits until every node of the test has all its workers and takes work.
func (r *rack) ready() {
	r.t.Helper()
	last := ""
	defer func() {
		if r.t.Failed() {
			r.t.Log(last)
		}
	}()
	until(r.t, "the rack is ready", func() bool {
		v := r.view()
		last = fmt.Sprintf("%+v", v)
		if v == nil || !v.Ready {
			return false
		}
		count := 0
		for _, n := range v.Nodes {
			if n.Ready && len(n.Devices) > 0 && len(n.Devices[0].Circuits) > 0 && n.SynthSlots > 0 {
				count++
			}
		}
		return count == len(r.nodes)
	})
}

// request is a toy job of some partitions, each another instance.
func request(key string, number uint64, seeds ...uint64) client.Request {
	var input []byte
	for _, seed := range seeds {
		input = append(input, toy.Slice(seed)...)
	}
	return client.Request{
		Key: key, Kind: "toy", Miner: "f01000", SectorNumber: &number, Input: bytes.NewReader(input),
		Output: job.OutputPartitions,
	}
}

// submit has a job accepted.
func (r *rack) submit(seeds ...uint64) *submitted {
	r.t.Helper()
	number := uint64(len(r.jobs) + 1)
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for {
		s, err := r.client.Submit(ctx, request(fmt.Sprintf("sector %d", number), number, seeds...))
		if fault.KindOf(err) == fault.Transient && ctx.Err() == nil {
			time.Sleep(50 * time.Millisecond) // as the answer says: ask again
			continue
		}
		r.check(err)
		return r.accepted(s.Job, seeds...)
	}
}

// accepted notes a toy job that was accepted.
func (r *rack) accepted(id job.ID, seeds ...uint64) *submitted {
	r.t.Helper()
	j := &submitted{id: id, circuit: toy.Circuit()}
	for _, seed := range seeds {
		w, err := toy.Circuit().Decode(toy.Slice(seed))
		r.check(err)
		j.public = append(j.public, w.PublicInputs())
	}
	r.jobs = append(r.jobs, j)
	return j
}

// record is a job's record, also while the rack turns over.
func (r *rack) record(j *submitted) *job.Record {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for {
		s, err := r.client.Status(ctx, j.id)
		if err == nil {
			r.watch.saw(s.Record)
			return s.Record
		}
		if ctx.Err() != nil {
			r.t.Fatalf("status of job %s: %v", j.id, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// waitEnd waits until a job has ended.
func (r *rack) waitEnd(j *submitted) *job.Record {
	r.t.Helper()
	var last *job.Record
	defer func() {
		if r.t.Failed() && last != nil {
			r.t.Logf("job %s: %s %+v\n%+v", last.ID, last.State, last.Fault, last.Partitions)
		}
	}()
	untilWithin(r.t, 2*patience, "job "+string(j.id)+" ends", func() bool {
		last = r.record(j)
		return last.State.Ended()
	})
	return last
}

// waitDone waits until jobs are done, all of the test when none is given.
func (r *rack) waitDone(jobs ...*submitted) {
	r.t.Helper()
	if len(jobs) == 0 {
		jobs = r.jobs
	}
	for _, j := range jobs {
		if record := r.waitEnd(j); record.State != job.Done {
			r.t.Fatalf("job %s is %s: %+v\n%+v", j.id, record.State, record.Fault, record.Partitions)
		}
	}
}

// reached waits until a process comes by a hook point ("name#n"), and gives its number.
func (r *rack) reached(point string) (pid int) {
	r.t.Helper()
	until(r.t, point+" is reached", func() (ok bool) {
		pid, ok = hook.ReachedBy(r.hooks, point)
		return ok
	})
	return pid
}

func (r *rack) letGo(point string) {
	r.t.Helper()
	r.check(hook.LetGo(r.hooks, point))
}

// book is a node's book, read from Redis itself; nil when there is none or Redis is away.
func (r *rack) book(name job.Node) *ledger.NodeBook {
	r.t.Helper()
	config := redisledger.DefaultConfig()
	config.Address = r.redis.listen
	l, err := redisledger.Open(config)
	r.check(err)
	defer l.Close()
	b, err := l.Node(r.t.Context(), name)
	if err != nil {
		return nil
	}
	return b
}

func readText(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}
