package drill_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/cli/internal/drill"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeRack proves each job two seconds after it was accepted, and holds its bytes for one more.
type fakeRack struct {
	mu     sync.Mutex
	jobs   map[job.ID]time.Time
	count  int
	away   bool
	proof  []byte
	spoil  func(r *job.Record)    // changes what is told of a job
	books  func(*wire.LedgerNode) // and of a book
	nodes  func(*wire.NodesReply)
	letter bool
	leaks  []string
	busy   bool // with others' jobs
	struck bool // first attempts are lost
	opened uint64
}

func newFakeRack() *fakeRack {
	return &fakeRack{jobs: map[job.ID]time.Time{}, proof: make([]byte, wire.ProofBytes)}
}

var errAway = fault.New(fault.Transient, "nobody answers")

func (f *fakeRack) answers() error {
	if f.away {
		return errAway
	}
	return nil
}

func (f *fakeRack) connect(context.Context) (drill.Rack, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f, f.answers()
}

func (f *fakeRack) Close() {}

func (f *fakeRack) Submit(context.Context, string) (job.ID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	id := job.ID(fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", f.count))
	f.jobs[id] = time.Now()
	return id, f.answers()
}

func (f *fakeRack) Record(_ context.Context, id job.ID) (*job.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, known := f.jobs[id]
	if err := f.answers(); err != nil {
		return nil, err
	}
	if !known {
		return nil, fault.New(fault.NotFound, "no job %s", id)
	}
	p := job.Partition{Stage: job.Proving, Fence: 1, Attempts: []job.AttemptRecord{{Fence: 1}}}
	r := &job.Record{ID: id, State: job.Active, Partitions: []job.Partition{p}}
	if time.Since(at) >= 2*time.Second {
		r.State, r.Partitions[0].Stage = job.Done, job.Verified
	}
	if f.struck {
		r.Partitions[0].Attempts = append(r.Partitions[0].Attempts, job.AttemptRecord{Fence: 2})
	}
	if f.spoil != nil {
		f.spoil(r)
	}
	return r, nil
}

func (f *fakeRack) Result(context.Context, *job.Record) ([]byte, error) { return f.proof, f.answers() }

func (f *fakeRack) Nodes(context.Context) (*wire.NodesReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reply := &wire.NodesReply{Ready: true, Nodes: []wire.NodeView{{Node: "n1", Ready: true}}}
	if f.nodes != nil {
		f.nodes(reply)
	}
	return reply, f.answers()
}

func (f *fakeRack) Books(context.Context) ([]wire.LedgerNode, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	book := wire.LedgerNode{
		Node: "n1", Declared: true, Openings: f.opened, Capacity: ledger.Amounts{ledger.PoolRAM: 10 * bytesize.GiB},
	}
	for id, at := range f.jobs {
		if time.Since(at) < 3*time.Second {
			book.Entries = append(book.Entries, wire.LedgerEntry{Name: job.Attempt{Job: id, Fence: 1}.String()})
		}
	}
	if f.books != nil {
		f.books(&book)
	}
	return []wire.LedgerNode{book}, f.answers()
}

func (f *fakeRack) Letters(context.Context) ([]wire.DeadLetter, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []wire.DeadLetter
	for id := range f.jobs {
		if f.letter {
			all = append(all, wire.DeadLetter{Job: id})
		}
	}
	return all, f.answers()
}

func (f *fakeRack) Buffers(context.Context) (bool, []string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.busy && len(f.leaks) == 0, f.leaks, f.answers()
}

func (f *fakeRack) change(do func()) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		do()
		return "", nil
	}
}

// drillOf runs one fault on a rack.
func drillOf(t *testing.T, f *fakeRack, name string, m drill.Means, edit func(*drill.Config)) drill.Verdict {
	t.Helper()
	steps, err := drill.Plan([]string{name}, map[string]drill.Means{name: m})
	if err != nil {
		t.Fatal(err)
	}
	config := drill.Config{Connect: f.connect}
	if edit != nil {
		edit(&config)
	}
	verdicts, err := drill.Run(t.Context(), config, steps)
	if err != nil || len(verdicts) != 1 {
		t.Fatalf("%v, %+v", err, verdicts)
	}
	return verdicts[0]
}

// What a rack does wrong after a fault is found, each by itself; a rack that does all right passes.
func TestDrillFindsWhatDoesNotHold(t *testing.T) {
	t.Parallel()
	var finished bool
	for name, c := range map[string]struct {
		fault string
		do    func(*fakeRack) // the fault, and what it breaks
		undo  func(*fakeRack)
		hold  time.Duration
		edit  func(*drill.Config)
		idle  bool   // nothing happens to the rack
		want  string // "" passes
	}{
		"all is right": {fault: drill.Worker},
		"no worker is killed": {
			fault: drill.Worker, idle: true, want: "nothing was seen of it",
		},
		"another coordinator than the leader is killed": {fault: drill.Leader, want: "nothing was seen of it"},
		"a store that is not the ledger's is emptied":   {fault: drill.Wipe, want: "nothing was seen of it"},
		"the leader is killed": {
			fault: drill.Leader, do: func(f *fakeRack) { f.nodes = func(r *wire.NodesReply) { r.Term = 2 } },
		},
		"the ledger is emptied": {
			fault: drill.Wipe, do: func(f *fakeRack) { f.books = func(b *wire.LedgerNode) { b.Openings = 2 } },
		},
		"segments go by disk": {fault: drill.Spill, do: func(f *fakeRack) {
			f.spoil = func(r *job.Record) { r.Partitions[0].Attempts[0].HandoffReason = "full" }
		}},
		"away for a while": {
			fault: drill.Broker, do: func(f *fakeRack) { f.away = true }, undo: func(f *fakeRack) { f.away = false },
			hold: 10 * time.Second,
		},
		"a job fails": {fault: drill.Worker, do: func(f *fakeRack) {
			f.spoil = func(r *job.Record) { r.State, r.Fault = job.Failed, &fault.Report{Message: "no luck"} }
		}, want: "is failed: no luck"},
		"a job never ends": {fault: drill.Worker, do: func(f *fakeRack) {
			f.spoil = func(r *job.Record) { r.State = job.Active }
		}, want: "has not ended within"},
		"a job is lost": {fault: drill.Store, do: func(f *fakeRack) { clear(f.jobs) }, want: "does not know it any more"},
		"a finished partition is begun again": {fault: drill.Worker, do: func(f *fakeRack) {
			f.spoil = func(r *job.Record) {
				if r.Partitions[0].Stage != job.Verified {
					return
				}
				if r.State = job.Active; !finished {
					finished = true
					return
				}
				r.State, r.Partitions[0].Attempts = job.Done, make([]job.AttemptRecord, 3)
			}
		}, edit: func(c *drill.Config) { c.Jobs = 1 }, want: "was finished and is verified after 1 more attempts"},
		"a pool holds too much": {fault: drill.Worker, do: func(f *fakeRack) {
			f.books = func(b *wire.LedgerNode) { b.Held = ledger.Amounts{ledger.PoolRAM: 11 * bytesize.GiB} }
		}, want: "node n1 holds 11 GiB of 10 GiB of ram"},
		"a booking stays": {fault: drill.Worker, do: func(f *fakeRack) {
			for id := range f.jobs {
				f.books = func(b *wire.LedgerNode) {
					b.Entries = []wire.LedgerEntry{{Name: job.Attempt{Job: id, Fence: 1}.String(), Limbo: true}}
				}
			}
		}, want: "node n1 has 01890a5d"},
		"a book stays closed": {fault: drill.Wipe, do: func(f *fakeRack) {
			f.books = func(b *wire.LedgerNode) { b.Declared = false }
		}, want: "the book of node n1 is closed"},
		"a node stays away": {fault: drill.Worker, do: func(f *fakeRack) {
			f.nodes = func(r *wire.NodesReply) { r.Nodes[0].Ready, r.Nodes[0].Reason = false, "no worker" }
		}, want: "node n1 is not ready: no worker"},
		"a device is in quarantine": {fault: drill.Worker, do: func(f *fakeRack) {
			f.nodes = func(r *wire.NodesReply) { r.Nodes[0].Devices = []wire.DeviceView{{Device: "d", Quarantined: true}} }
		}, want: "device d of node n1 is in quarantine"},
		"others work, too": {fault: drill.Worker, do: func(f *fakeRack) { f.busy = true }},
		"a buffer stays": {fault: drill.Worker, do: func(f *fakeRack) { f.leaks = []string{"synth leaks evals"} },
			want: "synth leaks evals"},
		"a dead letter": {fault: drill.Worker, do: func(f *fakeRack) { f.letter = true }, want: "left a dead letter"},
		"half a proof": {
			fault: drill.Worker, do: func(f *fakeRack) { f.proof = f.proof[1:] }, want: "it has 191 bytes, not 192",
		},
		"a wrong proof": {
			fault: drill.Worker,
			edit:  func(c *drill.Config) { c.Verify = func([]byte) error { return errors.New("does not hold") } },
			want:  "does not hold",
		},
		"the rack stays away": {
			fault: drill.Broker, do: func(f *fakeRack) { f.away = true }, want: "nobody answers",
		},
		"all is lost, and work is taken again": {fault: drill.Everything, do: func(f *fakeRack) { clear(f.jobs) }},
		"all is lost, and nothing is taken": {
			fault: drill.Everything, do: func(f *fakeRack) { clear(f.jobs); f.away = true }, want: "takes no job",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeRack()
				m := drill.Means{Do: drill.Action{Text: "break it"}, Hold: c.hold}
				m.Do.Run = f.change(func() {
					f.struck = c.fault == drill.Worker && !c.idle
					if c.fault == drill.Everything {
						f.opened++
					}
					if c.do != nil {
						c.do(f)
					}
				})
				if c.undo != nil {
					m.Undo = drill.Action{Text: "mend it", Run: f.change(func() { c.undo(f) })}
				}
				v := drillOf(t, f, c.fault, m, c.edit)
				all := strings.Join(v.Wrong, "\n")
				switch {
				case !v.Tried:
					t.Errorf("not tried: %s", v.Reason)
				case c.want == "" && !v.Passed(), !strings.Contains(all, c.want):
					t.Errorf("wrong: %q, want %q; evidence %q", all, c.want, v.Evidence)
				}
			})
		})
	}
}

// What a fault would need and the rack has not is said, and nothing is done.
func TestDrillDoesNothingWhereItIsNotFit(t *testing.T) {
	t.Parallel()
	never := func(t *testing.T) drill.Means {
		return drill.Means{Do: drill.Action{Text: "never", Run: func(context.Context) (string, error) {
			t.Error("it was done")
			return "", nil
		}}}
	}
	for name, c := range map[string]struct {
		fault string
		rack  func(*fakeRack)
		means func(*drill.Means)
		want  string
	}{
		"no means": {fault: drill.Broker, means: func(m *drill.Means) { m.Lacking = "no way there" }, want: "no way there"},
		"not ready": {
			fault: drill.Worker, want: "it is not ready",
			rack: func(f *fakeRack) { f.nodes = func(r *wire.NodesReply) { r.Ready = false } },
		},
		"away": {fault: drill.Worker, rack: func(f *fakeRack) { f.away = true }, want: "it does not answer"},
		"jobs would be lost": {
			fault: drill.Everything, rack: func(f *fakeRack) { f.nodes = func(r *wire.NodesReply) { r.Waiting = 3 } },
			want: "3 partitions wait or run",
		},
		"too fast": {fault: drill.Worker, rack: func(f *fakeRack) {
			f.spoil = func(r *job.Record) { r.State, r.Partitions[0].Stage = job.Done, job.Verified }
		}, want: "take a larger input"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, m := newFakeRack(), never(t)
				if c.rack != nil {
					c.rack(f)
				}
				if c.means != nil {
					c.means(&m)
				}
				v := drillOf(t, f, c.fault, m, nil)
				if v.Tried || v.Passed() || !strings.Contains(v.Reason, c.want) {
					t.Errorf("tried %t, %q, want %q", v.Tried, v.Reason, c.want)
				}
			})
		})
	}
}

// After a fault that the rack did not stand no other is tried; what was done is undone.
func TestDrillStopsAtTheFirstFaultThatIsNotStood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRack()
		undone := 0
		steps, err := drill.Plan([]string{drill.Leader, drill.Worker}, map[string]drill.Means{
			drill.Worker: {
				Do:   drill.Action{Run: func(context.Context) (string, error) { return "", errors.New("no such unit") }},
				Undo: drill.Action{Run: f.change(func() { undone++ })},
			},
			drill.Leader: {Do: drill.Action{Run: f.change(func() { t.Error("the second was tried") })}},
		})
		if err != nil {
			t.Fatal(err)
		}
		verdicts, err := drill.Run(t.Context(), drill.Config{Connect: f.connect}, steps)
		if err != nil || len(verdicts) != 2 || undone != 1 {
			t.Fatalf("%v, undone %d times, %+v", err, undone, verdicts)
		}
		if v := verdicts[0]; v.Name != drill.Worker || !strings.Contains(strings.Join(v.Wrong, " "), "no such unit") {
			t.Errorf("%+v", v)
		}
		if v := verdicts[1]; v.Tried || !strings.Contains(v.Reason, "did not stand worker") {
			t.Errorf("%+v", v)
		}
	})
}

func TestDrillPlansWhatEmptiesARackOnlyByName(t *testing.T) {
	t.Parallel()
	all, err := drill.Plan(nil, nil)
	if err != nil || len(all) != len(drill.Faults())-1 {
		t.Errorf("%v, %+v", err, all)
	}
	for _, s := range all {
		if s.Empties || s.Means.Lacking == "" {
			t.Errorf("planned: %+v", s)
		}
	}
	if _, err := drill.Plan([]string{"flood"}, nil); fault.KindOf(err) != fault.Invalid {
		t.Errorf("unknown fault: %v", err)
	}
}

func TestCommandsAreReadAndRun(t *testing.T) {
	t.Parallel()
	means, err := drill.Commands(
		strings.NewReader("[worker]\ndo = 'echo killed; echo it'\nundo = 'exit 3'\nhold = '5s'\n"),
	)
	if err != nil {
		t.Fatal(err)
	}
	m := means[drill.Worker]
	if m.Hold != 5*time.Second || m.Lacking != "" {
		t.Errorf("%+v", m)
	}
	if said, err := m.Do.Run(t.Context()); err != nil || said != "killed\nit" {
		t.Errorf("%q, %v", said, err)
	}
	if _, err := m.Undo.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("%v", err)
	}
	for text, want := range map[string]string{
		"[flood]\ndo = 'x'":                   "no fault",
		"[worker]\nundo = 'x'":                "no command do",
		"[worker]\ndo = 'x'\nhold = 'long'":   "hold",
		"[worker]\ndo = 'x'\nhold = '48h'":    "hold",
		"[worker]\ndo = 'x'\nuntil = 'never'": "unknown setting",
		"[worker":                             "means",
		"# " + strings.Repeat("x", 70<<10):    "over the limit",
	} {
		if _, err := drill.Commands(strings.NewReader(text)); fault.KindOf(err) != fault.Invalid ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// The shipped example reaches every fault, by units that are shipped, too.
func TestShippedMeansReachEveryFault(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../../../deploy/examples/drill.toml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	means, err := drill.Commands(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range drill.Faults() {
		m, ok := means[f.Name]
		if !ok {
			t.Errorf("fault %s has no means", f.Name)
		}
		for _, unit := range regexp.MustCompile(`[\w-]+\.service`).FindAllString(m.Do.Text+" "+m.Undo.Text, -1) {
			if _, err := os.Stat("../../../deploy/systemd/" + unit); err != nil {
				t.Errorf("fault %s: %v", f.Name, err)
			}
		}
	}
}
