package top

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// fake is a rack of the test. Under err every request fails by it.
type fake struct {
	mu     sync.Mutex
	nodes  wire.NodesReply
	jobs   wire.JobsReply
	flight wire.FlightReply
	record job.Record
	why    wire.WhyReply
	err    error
	did    []string
	asked  map[string]int
}

func answerOf[T any](f *fake, what string, value *T) (*T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[what]++
	if f.err != nil {
		return nil, f.err
	}
	copied := *value
	return &copied, nil
}

func (f *fake) Nodes(context.Context) (*wire.NodesReply, error) {
	return answerOf(f, "nodes", &f.nodes)
}
func (f *fake) Jobs(context.Context) (*wire.JobsReply, error) {
	return answerOf(f, "jobs", &f.jobs)
}
func (f *fake) Flight(context.Context) (*wire.FlightReply, error) {
	return answerOf(f, "flight", &f.flight)
}

func (f *fake) Status(_ context.Context, _ job.Tenant, id job.ID) (*wire.StatusReply, error) {
	record, err := answerOf(f, "status", &f.record)
	if err != nil {
		return nil, err
	}
	record.ID = id
	return &wire.StatusReply{Record: record}, nil
}

func (f *fake) Why(context.Context, job.Tenant, job.ID) (*wire.WhyReply, error) {
	return answerOf(f, "why", &f.why)
}

func (f *fake) do(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, fmt.Sprintf(format, args...))
	return f.err
}

func (f *fake) Cancel(_ context.Context, tenant job.Tenant, id job.ID) error {
	return f.do("cancel %s of %s", id, tenant)
}

func (f *fake) Drain(_ context.Context, node job.Node, undo bool) error {
	return f.do("drain %s undo=%t", node, undo)
}

// noon is when all tests happen.
func noon() time.Time { return time.Date(2026, 12, 3, 12, 0, 0, 0, time.UTC) }

// ids of three jobs.
const (
	idDone    = job.ID("01890a5d-ac96-774b-bcce-b302099a8057")
	idWaiting = job.ID("01890a5d-ac96-774b-bcce-b302099a8058")
	idRunning = job.ID("01890a5d-ac96-774b-bcce-b302099a8059")
)

// newFake is a rack of two nodes that work, one of whose devices is in quarantine.
func newFake() *fake {
	ago := func(d time.Duration) time.Time { return noon().Add(-d) }
	ended := ago(time.Minute)
	gib := func(n int64) bytesize.Bytes { return bytesize.Bytes(n) * bytesize.GiB }
	pools := func(ram, shm int64) ledger.Amounts { return ledger.Amounts{"ram": gib(ram), "shm": gib(shm)} }
	f := &fake{asked: map[string]int{}}
	f.nodes = wire.NodesReply{Leader: "c0ffee00-1", Term: 3, Ready: true, Waiting: 6, Nodes: []wire.NodeView{
		{Node: "n1", Ready: true, SeenAt: ago(time.Second), Capacity: pools(64, 32), Reserved: pools(48, 4), Running: 3,
			SynthSlots: 2, Devices: []wire.DeviceView{
				{Device: "gpu0", Name: "NVIDIA A4000", Healthy: true, Circuits: []string{"c"}},
			}},
		{Node: "n2", Ready: true, Draining: true, SeenAt: ago(2 * time.Second), Capacity: pools(128, 64),
			Reserved: pools(2, 0), Running: 1, SynthSlots: 4, Devices: []wire.DeviceView{
				{Device: "gpu0", Healthy: true, Circuits: []string{"c"}},
				{Device: "gpu1", Quarantined: true, Reason: "3 proofs did not verify"},
			}},
	}}
	f.jobs = wire.JobsReply{Jobs: []wire.JobSummary{
		{ID: idRunning, Tenant: "main", Key: "sector-4245", Circuit: "32GiB", Miner: "f01000", SectorNumber: 4245,
			State: job.Active, Verified: 4, Partitions: 10, Waiting: 2, SubmittedAt: ago(5 * time.Minute)},
		{ID: idWaiting, Tenant: "other", Key: "sector-4244", Circuit: "32GiB", Miner: "f01000", SectorNumber: 4244,
			State: job.Active, Partitions: 10, Waiting: 10, SubmittedAt: ago(time.Hour)},
		{ID: idDone, Tenant: "main", Key: "sector-4243", Circuit: "32GiB", Miner: "f01000", SectorNumber: 4243,
			State: job.Done, Verified: 10, Partitions: 10, SubmittedAt: ago(20 * time.Minute), EndedAt: &ended},
	}}
	f.flight = wire.FlightReply{Nodes: []wire.FlightNode{{Node: "n1", Reports: []flight.Report{{
		Process: "worker-synth", Pending: 2, Waiting: 1, BeyondBytes: gib(1), Classes: []flight.ClassReport{
			{Class: ledger.ClassAssignment, Pieces: 3, Bytes: gib(6), HighBytes: gib(8), Live: []flight.StageCount{
				{Stage: flight.Allocated, Pieces: 1}, {Stage: flight.Sealed, Pieces: 2},
			}},
			{Class: ledger.ClassSRS, Pieces: 1, Bytes: gib(20), HighBytes: gib(20)},
		},
	}}}}}
	f.why = wire.WhyReply{Reasons: []wire.Reason{{
		Partitions: []int{0, 1, 2, 5}, Text: "ram of n1: 3 GiB missing",
		Holders: []wire.Holder{{Name: "attempt 1", Bytes: gib(16)}},
	}}}
	f.record = job.Record{Tenant: "main", Key: "sector-4245", Circuit: "32GiB", Miner: "f01000", SectorNumber: 4245,
		State: job.Active, SubmittedAt: ago(5 * time.Minute), Partitions: []job.Partition{
			{Stage: job.Verified, StageAt: ago(time.Minute), Attempts: []job.AttemptRecord{{
				Node: "n1", Device: "gpu0", StartedAt: ago(4 * time.Minute), EndedAt: &ended, Outcome: job.OutcomeOK,
				Seconds: map[string]float64{"synthesize": 90, "prove": 75.25},
			}}},
			{Stage: job.Proving, Node: "n2", Device: "gpu0", StageAt: ago(30 * time.Second), LostCount: 1},
			{Stage: job.Sealed, Node: "n1", Device: "gpu0", StageAt: ago(10 * time.Second)},
			{Stage: job.Waiting, StageAt: ago(5 * time.Minute)},
		}}
	return f
}

// screen is a model whose requests are answered when the test says so.
type screen struct {
	t *testing.T
	*model
	fake *fake
	now  time.Time
	quit bool
}

func newScreen(t *testing.T, width, height int) *screen {
	t.Helper()
	s := &screen{t: t, fake: newFake(), now: noon()}
	config := DefaultConfig()
	config.Zone, config.Now = time.UTC, func() time.Time { return s.now }
	s.model = newModel(t.Context(), config, s.fake)
	s.send(tea.WindowSizeMsg{Width: width, Height: height})
	return s
}

// tick is one second later: all requests that are due are made and answered.
func (s *screen) tick() {
	s.now = s.now.Add(time.Second)
	for _, command := range s.due() {
		s.run(command)
	}
}

// run does a command and what follows from it.
func (s *screen) run(command tea.Cmd) {
	if command == nil {
		return
	}
	switch message := command().(type) {
	case tea.BatchMsg:
		for _, c := range message {
			s.run(c)
		}
	case tea.QuitMsg:
		s.quit = true
	default:
		s.send(message)
	}
}

func (s *screen) send(message tea.Msg) {
	_, command := s.Update(message)
	s.run(command)
}

// keys presses keys, by their names or letters.
func (s *screen) keys(names ...string) {
	for _, key := range names {
		s.send(keyOf(key))
	}
}

func keyOf(name string) tea.KeyPressMsg {
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp,
		"down": tea.KeyDown, "home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
		"backspace": tea.KeyBackspace}
	if code, ok := codes[name]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

func (s *screen) text() string { return plainText(s.frame()) }
