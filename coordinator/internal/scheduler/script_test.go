package scheduler_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/job"
)

// TestScripts runs testdata/*.txt, each named after what it shows. The commands are methods of script; -rewrite writes
// the transcripts anew.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			if text, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(text), "# ") {
				t.Fatalf("a script starts with the sentence that it shows (%v)", err)
			}
			s := &script{cfg: scheduler.DefaultConfig(), circuits: map[string]scheduler.CircuitView{}}
			// Unless a script says otherwise.
			s.cfg.EvictIdle, s.cfg.WorkAhead, s.cfg.SealedAhead = 0, 15*time.Second, 10*time.Second
			datadriven.RunTest(t, file, s.run)
		})
	}
}

// script is a world driven by text.
type script struct {
	*world
	cfg      scheduler.Config
	circuits map[string]scheduler.CircuitView
	at       *datadriven.TestData
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	s.at = d
	if d.Cmd == "config" {
		return s.config()
	}
	if s.world == nil {
		s.world = newWorld(t, s.cfg)
	}
	s.t = t
	commands := map[string]func() string{
		"circuit": s.circuit, "node": s.node, "gone": s.gone, "job": s.job, "stage": s.stage, "end": s.end, "free": s.free,
		"shrink": s.shrink, "cancel": s.cancel, "tick": s.wait, "why": s.why, "fits": s.fits, "refuse": s.refuses,
		"hold": s.holds, "answer": s.answers, "pause": s.pause, "resume": s.resume, "readmit": s.readmit, "drain": s.drain,
		"left": s.left, "stats": s.stats, "evicted": s.evictedNow, "restart": s.restart,
	}
	command := commands[d.Cmd]
	if command == nil {
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	out := command()
	out = s.take() + out
	if out == "" {
		return "nothing"
	}
	return out
}

// arg gives the value of an option, or the fallback.
func (s *script) arg(key, fallback string) string {
	for _, a := range s.at.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return strings.Join(a.Vals, ",")
		}
	}
	return fallback
}

func (s *script) has(key string) bool { return s.at.HasArg(key) }

// name is the n-th argument without a value.
func (s *script) name(n int) string {
	for _, a := range s.at.CmdArgs {
		if len(a.Vals) > 0 {
			continue
		}
		if n == 0 {
			return a.Key
		}
		n--
	}
	s.t.Fatalf("%s: argument missing", s.at.Pos)
	return ""
}

func (s *script) number(key string, fallback float64) float64 {
	text := s.arg(key, "")
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatalf("%s: %v", s.at.Pos, err)
	}
	return n
}

func (s *script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatalf("%s: %v", s.at.Pos, err)
	}
	return d
}

// attempt is the newest attempt of a partition written as job.index.
func (s *script) attempt() job.Attempt {
	id, index, _ := strings.Cut(s.name(0), ".")
	r := s.records[job.ID(id)]
	n, err := strconv.Atoi(index)
	if err != nil || r == nil || n >= len(r.Partitions) {
		s.t.Fatalf("%s: no partition %s", s.at.Pos, s.name(0))
	}
	a := r.Attempt(n)
	if fence := s.number("fence", 0); fence > 0 {
		a.Fence = uint64(fence)
	}
	return a
}

func (s *script) config() string {
	for _, a := range s.at.CmdArgs {
		value := strings.Join(a.Vals, ",")
		switch a.Key {
		case "ahead":
			s.cfg.WorkAhead = s.duration(value)
		case "sealed":
			s.cfg.SealedAhead = s.duration(value)
		case "ageing":
			s.cfg.Ageing = s.duration(value)
		case "patience":
			s.cfg.Patience = s.duration(value)
		case "quota": // (tenant,partitions,GiB)
			partitions, _ := strconv.Atoi(a.Vals[1])
			n, _ := strconv.ParseFloat(a.Vals[2], 64)
			s.cfg.Quotas = map[job.Tenant]scheduler.Quota{job.Tenant(a.Vals[0]): {Partitions: partitions, Bytes: gib(n)}}
		case "guess":
			s.cfg.GuessDefault = s.duration(value)
		case "partitions":
			s.cfg.DevicePartitionsMax, _ = strconv.Atoi(value)
		case "slots":
			s.cfg.SynthSlotsMax, _ = strconv.Atoi(value)
		case "idle":
			s.cfg.EvictIdle = s.duration(value)
		case "load":
			n, _ := strconv.ParseFloat(value, 64)
			s.cfg.LoadRate = gib(n)
		default:
			return "unknown " + a.Key
		}
	}
	return "ok"
}

// circuit declares what a circuit takes on nodes that are made from now on.
func (s *script) circuit() string {
	name := s.name(0)
	view := ready(kind(s.number("ram", 0), s.number("shm", 0), s.number("srs", 0), name))
	if s.has("disk") {
		second := kind(s.number("ram", 0)-s.number("shm", 0), 0, s.number("srs", 0), name)
		second.Amounts["disk"] = gib(s.number("disk", 0))
		view.Choices = append(view.Choices, second)
	}
	s.circuits[name] = view
	return "ok"
}

func (s *script) node() string {
	circuits := map[string]scheduler.CircuitView{}
	missing := strings.Split(s.arg("missing", ""), ",")
	for name, view := range s.circuits {
		if slices.Contains(missing, name) {
			view = scheduler.CircuitView{Missing: "file " + name + ".params is missing"}
		}
		if only := s.arg("only", name); only == name {
			circuits[name] = view
		}
	}
	v := nodeView(s.name(0), s.number("ram", 0), int(s.number("slots", 8)), circuits,
		strings.Split(s.arg("devices", "gpu0"), ",")...)
	if s.number("ram", 0) == 0 {
		v.Capacity = nil
	} else if v.Capacity["disk"] = gib(s.number("disk", 0)); s.has("shm") {
		v.Capacity["shm"] = gib(s.number("shm", 0))
	}
	v.Draining, v.Cordoned = s.has("draining"), s.has("cordoned")
	if reason := s.arg("not-ready", ""); reason != "" {
		v.Ready, v.Reason = false, reason
	}
	v.Wire.Max, v.Wire.Min = int(s.number("wire", 1)), int(s.number("wire", 1))
	for i := range v.Devices {
		v.Devices[i].Instance = s.arg("instance", "1")
		if reason := s.arg("sick", ""); reason != "" {
			v.Devices[i].Healthy, v.Devices[i].Reason = false, reason
		}
	}
	s.addNode(v)
	return ""
}

func (s *script) gone() string {
	s.apply(scheduler.NodeGone{Node: job.Node(s.name(0))})
	return ""
}

func (s *script) job() string {
	var within time.Duration
	if text := s.arg("within", ""); text != "" {
		within = s.duration(text)
	}
	s.addJobOf(job.Tenant(s.arg("tenant", "main")), within, job.ID(s.name(0)), s.arg("circuit", ""),
		int(s.number("partitions", 1)), int(s.number("priority", 0)))
	return ""
}

func (s *script) stage() string {
	s.progress(s.attempt(), job.Stage(s.name(1)))
	return ""
}

// end ends an attempt: ok frees its bytes too unless "keep" is said.
func (s *script) end() string {
	a := s.attempt()
	node := s.records[a.Job].Partitions[a.Partition].Node
	e := scheduler.Ended{Attempt: a, Outcome: job.Outcome(s.name(1)), BlameDevice: s.has("blame")}
	e.Device, e.Synth = s.duration(s.arg("device", "0s")), s.duration(s.arg("synth", "0s"))
	s.finish(e, job.DefaultPolicy())
	if !s.has("keep") {
		s.world.free(a, node)
	}
	return ""
}

func (s *script) free() string {
	s.world.free(s.attempt(), job.Node(s.name(1)))
	return ""
}

func (s *script) shrink() string {
	a := s.attempt()
	n := s.records[a.Job].Partitions[a.Partition].Node
	h := s.nodes[n].holdings[a]
	gone := kind(s.number("ram", 0), 0, 0, "").Amounts
	h.Amounts["ram"] -= gone["ram"]
	s.apply(scheduler.Shrunk{Attempt: a, Node: n, Amounts: gone})
	return ""
}

func (s *script) cancel() string {
	id := job.ID(s.name(0))
	if err := s.records[id].Cancel(nil, s.now); err != nil {
		return err.Error()
	}
	s.seen(id)
	return ""
}

func (s *script) wait() string {
	s.tick(s.duration(s.name(0)))
	return ""
}

func (s *script) why() string {
	var out strings.Builder
	for _, r := range s.core.Why(job.ID(s.name(0))) {
		fmt.Fprintf(&out, "%d %s, %d ahead: %s\n", r.Partition, r.Code, r.Ahead, r.Text)
	}
	return out.String()
}

func (s *script) fits() string {
	if err := s.core.Fits(s.name(0)); err != nil {
		return err.Error()
	}
	return "fits"
}

// refuses lets a node refuse what comes, or stop refusing.
func (s *script) refuses() string {
	cause := s.arg("cause", "")
	for key, all := range map[string]func(string){
		"node": func(name string) { s.refuse[job.Node(name)] = cause },
		"job":  func(name string) { s.refuseJob[job.ID(name)] = cause },
	} {
		if name := s.arg(key, ""); name != "" {
			all(name)
		}
	}
	if s.has("none") {
		clear(s.refuse)
		clear(s.refuseJob)
	}
	return "ok"
}

// holds keeps Admits, or Evicts with "assets", without outcome until answer.
func (s *script) holds() string {
	if s.has("assets") {
		s.keepAssets = true
	} else {
		s.hold = true
	}
	return "ok"
}

func (s *script) answers() string {
	s.hold = false
	s.answerAll()
	return ""
}

func (s *script) evictedNow() string {
	s.keepAssets = false
	if s.has("refused") {
		s.apply(scheduler.Evicted{Node: job.Node(s.name(0)), Asset: s.arg("asset", "")})
	} else {
		s.evict(job.Node(s.name(0)), s.arg("asset", ""))
	}
	return ""
}

func (s *script) pause() string {
	s.apply(scheduler.Paused{On: true, Reason: s.arg("reason", "")})
	return ""
}

func (s *script) resume() string {
	if s.has("halt") {
		s.apply(scheduler.Resumed{})
	} else {
		s.apply(scheduler.Paused{})
	}
	return ""
}

func (s *script) readmit() string {
	node, device, _ := strings.Cut(s.name(0), "/")
	s.apply(scheduler.Readmitted{Place: scheduler.Place{Node: job.Node(node), Device: job.Device(device)}})
	return ""
}

func (s *script) drain() string {
	running, left := s.core.Drain(job.Node(s.name(0)))
	return fmt.Sprintf("%d running, %s left", running, left)
}

func (s *script) left() string {
	left, known := s.core.Left(job.ID(s.name(0)))
	if !known {
		return "not known"
	}
	return left.String()
}

func (s *script) stats() string { return fmt.Sprintf("%+v", s.core.Stats()) }

// restart gives everything to a new core, the jobs before the nodes (a new leader takes over).
func (s *script) restart() string {
	core, err := scheduler.New(s.cfg)
	if err != nil {
		return err.Error()
	}
	s.core = core
	var ids []job.ID
	for id := range s.records {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		s.seen(id)
	}
	var names []job.Node
	for name := range s.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	if s.has("without-nodes") {
		names = nil
	}
	for _, name := range names {
		s.seeNode(name)
	}
	return ""
}
