package deploy_test

import (
	"bytes"
	"context"
	"encoding/base64"
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

	"github.com/nats-io/nats.go"

	"github.com/proofrack/proofrack/deploy/internal/keyring"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

// patience is how long a test waits for the rack.
const patience = time.Minute

// logged is what a program wrote.
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

// buildPrograms builds the rack's programs with the toy circuit.
func buildPrograms(t *testing.T) map[string]string {
	t.Helper()
	built := map[string]string{}
	folder := t.TempDir()
	for name, pkg := range map[string]string{
		"coordinator": "coordinator/cmd/coordinator", "synth": "worker-synth/cmd/worker-synth",
		"gpu": "worker-gpu/cmd/worker-gpu", "proofrack": "cli",
	} {
		built[name] = filepath.Join(folder, name)
		out, err := exec.Command("go", "build", "-tags", "toy", "-o", built[name],
			"github.com/proofrack/proofrack/"+pkg).CombinedOutput()
		if err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
	return built
}

// start runs a program as a user of the rack.
func (s *servers) start(program string, kind keyring.Kind, name string, settings ...string) *logged {
	s.t.Helper()
	c := s.as(kind, name)
	var args []string
	for _, setting := range append([]string{
		"nats.urls=" + c.URLs[0], "nats.creds_file=" + c.CredsFile, "nats.ca_file=" + c.CAFile,
		"nats.pull_wait=500ms", "http.listen=", "logs.level=debug",
	}, settings...) {
		args = append(args, "--set", setting)
	}
	cmd, log := exec.Command(program, args...), &logged{}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = log, log, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(s.t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if text := log.String(); s.t.Failed() {
			s.t.Logf("%s:\n%s", program, text[max(0, len(text)-6000):])
		}
	})
	return log
}

// TestWholeRackWorksWithTheseRights runs the programs themselves against the shipped NATS and Redis configurations: a
// job of two tenants goes through two nodes, the leader may change, and nobody asked for a right that it has not.
func TestWholeRackWorksWithTheseRights(t *testing.T) {
	s := newServers(t)
	redis := s.redis()
	built := buildPrograms(t)
	params := t.TempDir()
	c := toy.Circuit()
	_, err := generate.ToFolder(t.Context(), params, c, generate.FromSeed("deploy", c.ID()), generate.Options{})
	check(t, err)
	var logs []*logged
	for _, name := range []string{"c1", "c2"} {
		logs = append(logs, s.start(built["coordinator"], keyring.KindCoordinator, name, "ledger.address="+redis,
			"ledger.username=ledger", "ledger.password_file="+filepath.Join(s.dir, keyring.LedgerPassword),
			"ledger.ca_file="+filepath.Join(s.dir, "tls/ca.crt"), "params.dir="+params, "streams.tenants=main,other",
			"times.heartbeat=500ms", "times.tick=50ms", "times.sweep=1s"))
	}
	for _, name := range []string{"n1", "n2"} {
		spill, err := os.MkdirTemp("/dev/shm", "proofrack-deploy-")
		check(t, err)
		t.Cleanup(func() { os.RemoveAll(spill) })
		common := []string{
			"node=" + name, "spill.path=" + spill, "memory.claims=" + filepath.Join(spill, "claims"),
			"worker.heartbeat=500ms", "spill.sweep_every=1s",
		}
		logs = append(logs, s.start(built["synth"], keyring.KindNode, name, append(common, "synth.circuits=toy",
			"synth.slots=1", "synth.scratch_bytes=1MiB")...))
		logs = append(logs, s.start(built["gpu"], keyring.KindNode, name, append(common, "prove.devices=cpu",
			"prove.circuits=toy", "prove.params="+params, "prove.cache="+filepath.Join(spill, "cache"), "prove.workers=1")...))
	}
	operator := s.dial(keyring.KindOperator, "ann")
	s.ready(operator, 2)
	jobs := map[job.Tenant]job.ID{}
	for _, tenant := range []job.Tenant{"main", "other"} {
		jobs[tenant] = s.prove(tenant)
	}
	s.attackJobs(jobs)
	s.commands(built["proofrack"], jobs["main"])
	logs = append(logs, s.gateway(built["proofrack"]))
	for _, log := range logs {
		for line := range strings.Lines(log.String()) {
			if strings.Contains(strings.ToLower(line), "permission") {
				t.Errorf("a program lacks a right: %s", line)
			}
		}
	}
}

// ready waits until the leader tells an operator that the nodes take work.
func (s *servers) ready(operator bus.Bus, nodes int) {
	s.t.Helper()
	var last string
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
		var reply wire.NodesReply
		err := client.Ask(ctx, operator, wire.AdminSubject(wire.AdminNodes), &wire.Empty{}, &reply, 50*time.Millisecond)
		cancel()
		ready := 0
		for _, n := range reply.Nodes {
			if n.Ready && len(n.Devices) > 0 && n.SynthSlots > 0 {
				ready++
			}
		}
		last = fmt.Sprintf("%v %+v", err, reply)
		if err == nil && reply.Ready && ready == nodes {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the rack is not ready: %s", last)
		}
	}
}

// prove takes a job with four partitions through the rack, with an input so large that it goes by reference.
func (s *servers) prove(tenant job.Tenant) job.ID {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	b := s.dial(keyring.KindTenant, string(tenant))
	user := client.New(b, tenant)
	var heard logged
	stop, err := b.Subscribe("c2.event."+string(tenant)+".>", func(m bus.Message) { fmt.Fprintln(&heard, m.Subject) })
	check(s.t, err)
	defer stop()
	number := uint64(7)
	small, err := user.Submit(ctx, client.Request{
		Key: "small", Kind: "toy", Miner: "f01000", SectorNumber: &number, Input: bytes.NewReader(toy.Slice(9)),
		Output: job.OutputPartitions,
	})
	check(s.t, err)
	if record, err := user.Wait(ctx, small.Job, nil); err != nil || record.State != job.Done {
		s.t.Fatalf("small job of %s: %+v, %v", tenant, record, err)
	}
	var input []byte
	for seed := range uint64(4) {
		input = append(input, toy.Slice(seed)...)
	}
	submitted, err := user.Submit(ctx, client.Request{
		Key: "k", Kind: "toy", Miner: "f01000", SectorNumber: &number, Input: bytes.NewReader(input),
		Output: job.OutputPartitions,
	})
	check(s.t, err)
	record, err := user.Wait(ctx, submitted.Job, nil)
	check(s.t, err)
	s.events(&heard, submitted.Job)
	if record.State != job.Done {
		s.t.Fatalf("job of %s is %s: %+v", tenant, record.State, record.Fault)
	}
	proof, err := user.Result(ctx, record)
	check(s.t, err)
	if len(proof) != 4*wire.ProofBytes {
		s.t.Errorf("proof has %d bytes", len(proof))
	}
	if _, err := user.Why(ctx, submitted.Job); err != nil && fault.KindOf(err) == fault.Invalid {
		s.t.Errorf("why: %v", err)
	}
	_, err = user.Jobs(ctx, wire.JobsRequest{})
	check(s.t, err)
	return submitted.Job
}

// events waits until a tenant has heard of all that happened to its job.
func (s *servers) events(heard *logged, id job.ID) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		text := heard.String()
		if strings.Contains(text, string(id)+".accepted") && strings.Contains(text, string(id)+".partition") &&
			strings.Contains(text, string(id)+".done") {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("events of job %s: %s", id, text)
		}
	}
}

// attackJobs has each tenant ask for the other's job on its own subject, where NATS has no objection: the coordinator
// must. It also has a proof read from the other's bucket by a plain NATS client.
func (s *servers) attackJobs(jobs map[job.Tenant]job.ID) {
	s.t.Helper()
	thief := client.New(s.dial(keyring.KindTenant, "main"), "main")
	if _, err := thief.Status(s.t.Context(), jobs["other"]); fault.KindOf(err) != fault.NotFound {
		s.t.Errorf("status of another tenant's job: %v", err)
	}
	if err := thief.Cancel(s.t.Context(), jobs["other"], "mine"); fault.KindOf(err) != fault.NotFound {
		s.t.Errorf("cancel of another tenant's job: %v", err)
	}
	if _, err := thief.Why(s.t.Context(), jobs["other"]); fault.KindOf(err) != fault.NotFound {
		s.t.Errorf("why of another tenant's job: %v", err)
	}
	// The body names another tenant than the subject.
	number := uint64(7)
	body, err := wire.Encode(&wire.Submit{
		Tenant: "other", Key: "forged", Kind: "toy", Miner: "f01000", SectorNumber: &number, Inline: toy.Slice(1),
		Output: job.OutputPartitions,
	})
	check(s.t, err)
	conn, _ := s.raw(keyring.KindTenant, "main")
	answer, err := conn.Request(wire.ClientSubject(wire.VerbSubmit, "main"), body, 5*time.Second)
	check(s.t, err)
	var reply wire.SubmitReply
	check(s.t, wire.Decode(answer.Data, &reply))
	if reply.Err() == nil {
		s.t.Errorf("a job was submitted for another tenant: %+v", reply)
	}
	s.plainClient(conn, jobs["main"])
}

// plainClient reads a proof as `nats request` does, without our code: from the record, and from the bucket.
func (s *servers) plainClient(conn *nats.Conn, id job.ID) {
	s.t.Helper()
	ask := func(subject, body string) []byte {
		s.t.Helper()
		answer, err := conn.Request(subject, []byte(body), 5*time.Second)
		if err != nil {
			s.t.Fatalf("%s: %v", subject, err)
		}
		return answer.Data
	}
	var status struct {
		Record struct {
			Partitions []struct{ Proof []byte }
			Result     struct{ Name string }
		}
	}
	check(s.t, json.Unmarshal(ask("c2.status.main", fmt.Sprintf(`{"v":2,"job_id":%q}`, id)), &status))
	var proof []byte
	for _, p := range status.Record.Partitions {
		proof = append(proof, p.Proof...)
	}
	if len(proof) != 4*wire.ProofBytes {
		s.t.Errorf("the record of job %s has a proof of %d bytes", id, len(proof))
	}
	name := base64.URLEncoding.EncodeToString([]byte(status.Record.Result.Name))
	const get = "$JS.API.DIRECT.GET.OBJ_c2-proofs-main.$O.c2-proofs-main."
	var info struct{ NUID string }
	check(s.t, json.Unmarshal(ask(get+"M."+name, ""), &info))
	if stored := ask(get+"C."+info.NUID, ""); !bytes.Equal(stored, proof) {
		s.t.Errorf("the stored proof of job %s has %d bytes and is not the record's", id, len(stored))
	}
}
