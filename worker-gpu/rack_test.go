//go:build toy

package workergpu_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

// programs are the two workers, built once for all tests.
var programs struct { //nolint:gochecknoglobals // filled by TestMain
	gpu   string
	synth string
}

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	folder, err := os.MkdirTemp("", "proofrack-workers-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	programs.gpu, programs.synth = filepath.Join(folder, "worker-gpu"), filepath.Join(folder, "worker-synth")
	for path, pkg := range map[string]string{
		programs.gpu: "./cmd/worker-gpu", programs.synth: "../worker-synth/cmd/worker-synth",
	} {
		if out, err := exec.Command("go", "build", "-tags", "toy", "-o", path, pkg).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", pkg, err, out)
			return 1
		}
	}
	return m.Run()
}

const (
	node   = job.Node("n1")
	device = job.Device("cpu")
)

// rack is a server and the workers of one host; the test is the coordinator.
type rack struct {
	t       *testing.T
	server  *natsbus.Embedded
	bus     *natsbus.Bus
	kv      bus.KV
	slices  bus.Objects
	results bus.Queue
	spill   string
	params  string
	last    job.Attempt
	hooks   string
	enter   []string // what starts a program elsewhere, in a namespace
	view    string   // the spill folder as the test sees it
	key     *groth16.PreparedKey

	mu    sync.Mutex
	beats map[string]wire.Beat // by role, the latest
}

func newRack(t *testing.T) *rack {
	t.Helper()
	r := &rack{t: t, params: t.TempDir(), hooks: t.TempDir(), beats: map[string]wire.Beat{}}
	var err error
	if r.spill, err = os.MkdirTemp("/dev/shm", "proofrack-test-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(r.spill) })
	r.view = r.spill
	r.server, err = natsbus.StartEmbedded(natsbus.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.server.Close(); err != nil {
			t.Error(err)
		}
	})
	config := natsbus.DefaultConfig()
	config.URLs = []string{r.server.URL()}
	if r.bus, err = natsbus.Dial(t.Context(), config, natsbus.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.bus.Close)
	r.setup()
	stop, err := r.bus.Subscribe(wire.AllBeats, r.heard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return r
}

func (r *rack) setup() {
	r.t.Helper()
	work := func(name, subject string) bus.Stream {
		return bus.Stream{Name: name, Subjects: []string{subject}, Retention: bus.WorkQueue, BytesMax: 16 * bytesize.MiB}
	}
	err := r.bus.Setup(r.t.Context(), bus.Topology{
		Streams: []bus.Stream{
			work(wire.StreamSynth, wire.AllSynth), work(wire.StreamProve, wire.AllProve),
			work(wire.StreamResult, wire.AllResult),
			{Name: wire.StreamDLQ, Subjects: []string{wire.AllDLQ}, Retention: bus.Limits, BytesMax: bytesize.MiB},
		},
		Buckets: []bus.Bucket{{Name: wire.BucketJobs, BytesMax: bytesize.MiB}},
		Objects: []bus.ObjectBucket{{Name: wire.ObjectsSlices, BytesMax: 16 * bytesize.MiB}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if r.kv, err = r.bus.KV(r.t.Context(), wire.BucketJobs); err != nil {
		r.t.Fatal(err)
	}
	if r.slices, err = r.bus.Objects(r.t.Context(), wire.ObjectsSlices); err != nil {
		r.t.Fatal(err)
	}
	r.results, err = r.bus.Queue(r.t.Context(),
		bus.Consumer{Stream: wire.StreamResult, Name: "coordinator", Subject: wire.AllResult})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rack) heard(m bus.Message) {
	var b wire.Beat
	if err := wire.Decode(m.Data, &b); err != nil {
		r.t.Errorf("beat: %v", err)
		return
	}
	for _, d := range b.Devices { // as coordinators do
		_, err := r.bus.Queue(r.t.Context(), bus.Consumer{
			Stream: wire.StreamProve, Name: wire.ProveConsumer(b.Node, d.Device),
			Subject: wire.ProveSubject(b.Node, d.Device), AckWait: time.Duration(b.AckWaitMS) * time.Millisecond,
		})
		if err != nil && r.t.Context().Err() == nil {
			r.t.Logf("make queue: %v", err)
		}
	}
	if b.Role == wire.RoleSynth {
		_, err := r.bus.Queue(r.t.Context(), bus.Consumer{
			Stream: wire.StreamSynth, Name: wire.SynthConsumer(b.Node), Subject: wire.SynthSubject(b.Node),
			AckWait: time.Duration(b.AckWaitMS) * time.Millisecond,
		})
		if err != nil && r.t.Context().Err() == nil {
			r.t.Logf("make queue: %v", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beats[b.Role] = b
}

// makeParams puts the toy's parameters into the folder.
func (r *rack) makeParams() {
	r.t.Helper()
	c := toy.Circuit()
	_, err := generate.ToFolder(r.t.Context(), r.params, c, generate.FromSeed("t", c.ID()), generate.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
}

// process is a worker program.
type process struct {
	*exec.Cmd

	log  *logged
	done chan struct{}
	err  error
}

// logged is a program's log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start runs a worker with settings that fit a test's patience.
func (r *rack) start(program string, settings ...string) *process {
	r.t.Helper()
	args := []string{}
	for _, s := range append([]string{
		"node=" + string(node), "spill.path=" + r.spill, "memory.claims=" + r.spill + "/claims",
		"spill.sweep_every=1s", "nats.urls=" + r.server.URL(),
		"nats.reconnect_max=200ms", "nats.pull_wait=500ms", "worker.heartbeat=200ms", "worker.ack_wait=3s",
		"worker.keep_every=500ms",
		"worker.retry_max=500ms", "worker.settle_max=1s", "logs.level=debug", "http.listen=",
	}, settings...) {
		args = append(args, "--set", s)
	}
	command := append(append(append([]string{}, r.enter...), program), args...)
	p := &process{Cmd: exec.Command(command[0], command[1:]...), log: &logged{}, done: make(chan struct{})}
	p.Stderr, p.Stdout = p.log, p.log
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		p.err = p.Wait()
		close(p.done)
	}()
	r.t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.done
		if strings.Contains(p.log.String(), "DATA RACE") { // when all is built with the race detector
			r.t.Error("a program has a data race")
		}
		if r.t.Failed() {
			r.t.Logf("log of %s:\n%s", filepath.Base(program), p.log)
		}
	})
	return p
}

func (r *rack) startGPU(settings ...string) *process {
	return r.start(programs.gpu, append([]string{
		"prove.params=" + r.params, "prove.devices=cpu", "prove.circuits=toy", "prove.poll=200ms", "engine.pause_min=50ms",
	}, settings...)...)
}

func (r *rack) startSynth(settings ...string) *process {
	return r.start(programs.synth, append([]string{"synth.circuits=toy", "synth.slots=1"}, settings...)...)
}

// wait polls until a condition holds.
func (r *rack) wait(what string, holds func() bool) {
	r.t.Helper()
	r.waitFor(time.Minute, what, holds)
}

func (r *rack) waitFor(limit time.Duration, what string, holds func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(deadline) {
			r.t.Fatalf("not within %s: %s", limit, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (r *rack) beat(role string) wire.Beat {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.beats[role]
}

// ready waits until a worker of a role says so.
func (r *rack) ready(role string) {
	r.t.Helper()
	r.wait(role+" is ready", func() bool { return r.beat(role).State == wire.StateReady })
}

// host is the latest host report of any worker.
func (r *rack) host() *wire.HostReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	var latest *wire.HostReport
	for _, b := range r.beats {
		if b.Host != nil && (latest == nil || b.Host.At.After(latest.At)) {
			latest = b.Host
		}
	}
	return latest
}

// job makes the record of a toy job with one partition.
func (r *rack) job(seed uint64) job.ID {
	r.t.Helper()
	id, err := job.NewID()
	if err != nil {
		r.t.Fatal(err)
	}
	slice := r.putSlice(id, toy.Slice(seed))
	now := time.Now()
	record := job.Record{
		Version: job.RecordVersion, ID: id, Tenant: job.MainTenant, Kind: "toy", Circuit: "toy", State: job.Active,
		SubmittedAt: now, Partitions: []job.Partition{{Stage: job.Waiting, StageAt: now, Slice: slice}},
	}
	data, err := json.Marshal(&record)
	if err == nil {
		_, err = r.kv.Create(r.t.Context(), wire.JobKey(id), data)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *rack) putSlice(id job.ID, data []byte) job.Object {
	r.t.Helper()
	info, err := r.slices.Put(r.t.Context(), wire.SliceName(id, 0), bytes.NewReader(data), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return job.Object{Name: info.Name, Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
}

// change rewrites a record as the leader does.
func (r *rack) change(id job.ID, do func(*job.Record)) {
	r.t.Helper()
	e, err := r.kv.Get(r.t.Context(), wire.JobKey(id))
	if err != nil {
		r.t.Fatal(err)
	}
	var record job.Record
	if err := json.Unmarshal(e.Value, &record); err != nil {
		r.t.Fatal(err)
	}
	do(&record)
	data, err := json.Marshal(&record)
	if err == nil {
		_, err = r.kv.Update(r.t.Context(), wire.JobKey(id), data, e.Revision)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// need is more than a toy attempt takes.
const need = 2 * bytesize.MiB

// claim gives the partition of a job to the workers.
func (r *rack) claim(id job.ID) job.Attempt { return r.claimWith(id, device, func(*wire.SynthTask) {}) }

func (r *rack) claimWith(id job.ID, to job.Device, adjust func(*wire.SynthTask)) (a job.Attempt) {
	r.t.Helper()
	var task wire.SynthTask
	r.change(id, func(record *job.Record) {
		var err error
		if a, err = record.Claim(0, node, to, time.Now()); err != nil {
			r.t.Fatal(err)
		}
		task = wire.SynthTask{
			Attempt: a, Node: node, Device: to, Circuit: "toy", Slice: record.Partitions[0].Slice,
			Amounts: ledger.Amounts{ledger.PoolRAM: need, ledger.PoolSHM: need},
		}
	})
	adjust(&task)
	data, err := wire.Encode(&task)
	if err == nil {
		_, err = r.bus.Publish(r.t.Context(), bus.Message{Subject: wire.SynthSubject(node), ID: a.String(), Data: data})
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// result waits for the next result.
func (r *rack) result() wire.Result {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	d, err := r.results.Fetch(ctx)
	if err != nil {
		r.t.Fatalf("wait for a result: %v", err)
	}
	var result wire.Result
	if err := wire.Decode(d.Message().Data, &result); err != nil {
		r.t.Fatal(err)
	}
	if err := d.Ack(ctx); err != nil {
		r.t.Fatal(err)
	}
	return result
}

// noResult makes sure that none is waiting.
func (r *rack) noResult() {
	r.t.Helper()
	s, err := r.results.State(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	if s.Waiting+s.Held != 0 {
		r.t.Errorf("there are %d more results", s.Waiting+s.Held)
	}
}

// wantProof checks a result of a success.
func (r *rack) wantProof(result wire.Result, a job.Attempt, seed uint64) {
	r.t.Helper()
	if result.Outcome != job.OutcomeOK || result.Attempt != a {
		r.t.Fatalf("result of %s: %s %+v, want success of %s", result.Attempt, result.Outcome, result.Fault, a)
	}
	if r.key == nil {
		path := filepath.Join(r.params, toy.Circuit().ParamsName()+srs.KeyExtension)
		key, err := srs.OpenKey(r.t.Context(), path, 0, srs.Options{})
		if err != nil {
			r.t.Fatal(err)
		}
		if r.key, err = groth16.Prepare(key.VerifyingKey); err != nil {
			r.t.Fatal(err)
		}
	}
	w, err := toy.Circuit().Decode(toy.Slice(seed))
	if err != nil {
		r.t.Fatal(err)
	}
	p, err := groth16.ParseProof(result.Proof)
	if err == nil {
		err = r.key.Verify(w.PublicInputs(), p)
	}
	if err != nil {
		r.t.Fatalf("proof of %s: %v", a, err)
	}
}

// clean waits until nothing of any attempt is left: no booking, no segment, no message.
func (r *rack) clean() {
	r.t.Helper()
	r.wait("no booking and no segment is left", func() bool { return len(r.bookings())+len(r.segments()) == 0 })
	r.wait("the host says so", func() bool { h := r.host(); return h != nil && h.BookComplete && len(h.Book) == 0 })
	for _, stream := range []string{wire.StreamSynth, wire.StreamProve} {
		log, err := r.bus.Log(r.t.Context(), stream)
		if err != nil {
			r.t.Fatal(err)
		}
		r.wait("stream "+stream+" is empty", func() bool {
			s, err := log.State(r.t.Context())
			return err == nil && s.Messages == 0
		})
	}
}

func (r *rack) bookings() []string {
	var found []string
	for _, name := range r.names("book") {
		if _, err := job.ParseAttempt(name); err == nil {
			found = append(found, name)
		}
	}
	return found
}

func (r *rack) segments() []string { return r.names("seg") }

func (r *rack) names(folder string) []string {
	entries, err := os.ReadDir(filepath.Join(r.view, folder))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// engines are the process numbers of a worker's engines.
func engines(p *process) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, e := range entries {
		var pid, parent int
		if n, err := fmt.Sscan(e.Name(), &pid); n != 1 || err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		var state string
		if n, err := fmt.Sscan(rest, &state, &parent); n == 2 && err == nil && parent == p.Process.Pid && state != "Z" {
			found = append(found, pid)
		}
	}
	return found
}

// reached tells whether a process came by a hook; letGo ends its pause.
func (r *rack) reached(point string) bool {
	_, ok := hook.ReachedBy(r.hooks, point)
	return ok
}

func (r *rack) letGo(point string) {
	r.t.Helper()
	if err := hook.LetGo(r.hooks, point); err != nil {
		r.t.Fatal(err)
	}
}

func faultText(r wire.Result) string {
	if r.Fault == nil {
		return ""
	}
	return string(r.Fault.Kind) + ": " + r.Fault.Message
}
