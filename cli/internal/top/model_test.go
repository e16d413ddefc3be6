package top

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

var rewrite = flag.Bool("rewrite", false, "write the frames of testdata") //nolint:gochecknoglobals // a flag

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares a frame with testdata/frames/<name>.txt.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata/frames", name+".txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // for all to look at
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestFramesLookAsTheyDid(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{
		"overview": nil, "nodes": {"tab", "down"}, "job": {"enter"}, "help": {"?"}, "cancel": {"c"},
		"filtered": {"/", "4", "2", "4", "4", "enter"},
	} {
		for _, width := range []int{40, 100} {
			t.Run(fmt.Sprintf("%s at %d", name, width), func(t *testing.T) {
				t.Parallel()
				s := newScreen(t, width, 30)
				s.tick()
				s.keys(keys...)
				s.tick()
				golden(t, fmt.Sprintf("%s_%d", name, width), s.text())
			})
		}
	}
}

// Nothing that the rack says reaches the terminal as anything but text, and no screen is too small for it.
func TestHostileNamesStayText(t *testing.T) {
	t.Parallel()
	letters := rapid.SampledFrom([]string{"\x1b[2J", "\x07", "\n", "\t", "a", "世", "é", "e\u0301",
		"\u202e", "\u200d", "👩", "🇩", "\xff",
		"\x9b31m", "\x00", "ᄀ", "ᅡ", "한", "|", "\u2028"})
	hostile := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(letters, 0, 60).Draw(t, "letters"), "")
	})
	rapid.Check(t, func(rt *rapid.T) {
		s := newScreen(t, rapid.IntRange(1, 200).Draw(rt, "width"), rapid.IntRange(1, 60).Draw(rt, "height"))
		name := func() string { return hostile.Draw(rt, "name") }
		f := s.fake
		f.nodes.Leader, f.nodes.Reason, f.nodes.Ready = name(), name(), rapid.Bool().Draw(rt, "ready")
		for i := range f.nodes.Nodes {
			n := &f.nodes.Nodes[i]
			n.Node, n.Reason, n.Devices[0].Name = job.Node(name()), name(), name()
		}
		for i := range f.jobs.Jobs {
			j := &f.jobs.Jobs[i]
			j.Key, j.Tenant, j.Miner, j.State = name(), job.Tenant(name()), name(), job.State(name())
			j.Verified, j.Partitions = rapid.Int().Draw(rt, "verified"), rapid.Int().Draw(rt, "partitions")
		}
		f.why.Reasons[0].Text, f.record.Key, f.record.Partitions[0].Stage = name(), name(), job.Stage(name())
		f.flight.Nodes[0].Leaks = []flight.Leak{{Process: name(), Why: name()}}
		s.tick()
		s.keys(rapid.SliceOfN(rapid.SampledFrom([]string{"enter", "esc", "tab", "down", "up", "s", "r", "c", "d",
			"?", "/", "a",
			"y", "end"}), 0, 12).Draw(rt, "keys")...)
		if rapid.Bool().Draw(rt, "away") {
			f.err = errors.New(name())
		}
		s.tick()
		frame := s.frame()
		if len(frame) > max(1, s.height) {
			rt.Fatalf("%d lines on a screen of %d", len(frame), s.height)
		}
		for _, l := range frame {
			text := l.text()
			if ansi.StringWidth(text) > s.width {
				rt.Fatalf("%d columns on a screen of %d: %q", ansi.StringWidth(text), s.width, text)
			}
			if text != printable(text) {
				rt.Fatalf("not printable: %q", text)
			}
		}
	})
}

// While nobody answers, what was known stays, with its time and the reason; it goes on by itself.
func TestScreenOutlivesALeaderThatGoesAway(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 100, 30)
	if text := s.text(); !strings.Contains(text, "asking") || !strings.Contains(text, "not known yet") {
		t.Errorf("before any answer:\n%s", text)
	}
	s.tick()
	s.fake.err = fault.New(fault.Transient, "no responders\x1b[2J")
	for range 5 {
		s.tick()
	}
	text := s.text()
	for _, want := range []string{"as of 12:00:01", "no answer about nodes for 5s: no responders?[2J", "n1",
		"01890a5d..8059"} {
		if !strings.Contains(text, want) {
			t.Errorf("away: no %q in\n%s", want, text)
		}
	}
	s.fake.err = nil
	s.tick()
	if text := s.text(); !strings.Contains(text, "as of 12:00:07") || strings.Contains(text, "no answer") {
		t.Errorf("back:\n%s", text)
	}

	s = newScreen(t, 100, 30)
	s.fake.err = errors.New("nobody")
	s.tick()
	text = s.text()
	if !strings.Contains(text, "no answer yet") || !strings.Contains(text, "no answer about nodes: nobody") {
		t.Errorf("never there:\n%s", text)
	}
}

// A request that takes long is not made again meanwhile; others go on.
func TestOneRequestOfAKindAtATime(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 100, 30)
	slow := ask(s.model, asksJobs, &s.model.jobs, s.fake.Jobs)
	for range 3 {
		s.tick()
	}
	if s.fake.asked["jobs"] != 0 || s.fake.asked["nodes"] != 3 {
		t.Errorf("asked %v while the first request was not answered", s.fake.asked)
	}
	s.run(slow)
	s.tick()
	if s.fake.asked["jobs"] != 2 {
		t.Errorf("asked %v after it was answered", s.fake.asked)
	}
}

func TestKeysAskBeforeTheyChangeAnything(t *testing.T) {
	t.Parallel()
	cancel := "cancel " + string(idRunning) + " of main"
	for name, c := range map[string]struct {
		keys []string
		did  []string
		says string
	}{
		"cancel":             {[]string{"c", "y"}, []string{cancel}, "cancel job 01890a5d..8059"},
		"cancel, no":         {[]string{"c", "n"}, nil, "nothing was changed"},
		"cancel, other key":  {[]string{"c", "enter", "y"}, nil, ""},
		"cancel, asks":       {[]string{"c"}, nil, "cancel job 01890a5d..8059 of main? (y/n)"},
		"cancel second":      {[]string{"j", "c", "y"}, []string{"cancel " + string(idWaiting) + " of other"}, ""},
		"cancel open job":    {[]string{"enter", "c", "y"}, []string{cancel}, ""},
		"cancel ended job":   {[]string{"end", "c", "y"}, nil, ""},
		"cancel with nodes":  {[]string{"tab", "c"}, nil, "choose a job first"},
		"drain":              {[]string{"tab", "d", "y"}, []string{"drain n1 undo=false"}, "drain node n1"},
		"drain what drains":  {[]string{"tab", "down", "d", "y"}, []string{"drain n2 undo=true"}, "give node n2 work again"},
		"drain with jobs":    {[]string{"d", "y"}, nil, ""},
		"drain, says":        {[]string{"d"}, nil, "choose a node first"},
		"letters of filters": {[]string{"/", "c", "y", "d", "q"}, nil, "/cydq_"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScreen(t, 100, 30)
			s.tick()
			s.keys(c.keys...)
			if diff := cmp.Diff(c.did, s.fake.did); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
			if text := s.text(); !strings.Contains(text, c.says) {
				t.Errorf("no %q in\n%s", c.says, text)
			}
			if s.quit {
				t.Error("it quit")
			}
		})
	}
}

func TestRefusedChangeIsTold(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 100, 30)
	s.tick()
	s.fake.err = fault.New(fault.Conflict, "it is over")
	s.keys("c", "y")
	if text := s.text(); !strings.Contains(text, "cancel job 01890a5d..8059: it is over") {
		t.Errorf("not told:\n%s", text)
	}
}

func TestQuit(t *testing.T) {
	t.Parallel()
	for _, key := range []tea.KeyPressMsg{keyOf("q"), {Code: 'c', Mod: tea.ModCtrl}} {
		s := newScreen(t, 100, 30)
		if s.send(key); !s.quit {
			t.Errorf("%s does not quit", key)
		}
	}
}

// The chosen line stays on its job when others come, and near it when it goes.
func TestChosenJobStaysChosen(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 100, 30)
	s.tick()
	s.keys("down")
	if s.job != idWaiting {
		t.Fatalf("chosen is %s", s.job)
	}
	s.fake.jobs.Jobs = append([]wire.JobSummary{{ID: "new", State: job.Active, SubmittedAt: s.now}}, s.fake.jobs.Jobs...)
	s.tick()
	if s.job != idWaiting {
		t.Errorf("a new job came: chosen is %s", s.job)
	}
	s.fake.jobs.Jobs = s.fake.jobs.Jobs[:2]
	s.tick()
	if s.job != idRunning {
		t.Errorf("it went: chosen is %s", s.job)
	}
	s.fake.jobs.Jobs = nil
	s.tick()
	s.keys("down", "enter", "c", "y")
	if s.job != "" || s.fake.did != nil {
		t.Errorf("without jobs: chosen is %s, done %v", s.job, s.fake.did)
	}
}

func TestSortAndFilter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys  []string
		jobs  []job.ID
		nodes []job.Node
	}{
		"as it comes":     {nil, []job.ID{idRunning, idWaiting, idDone}, []job.Node{"n1", "n2"}},
		"turned":          {[]string{"r"}, []job.ID{idDone, idWaiting, idRunning}, []job.Node{"n1", "n2"}},
		"by waiting":      {[]string{"s", "s"}, []job.ID{idWaiting, idRunning, idDone}, []job.Node{"n1", "n2"}},
		"by progress":     {[]string{"s", "s", "s"}, []job.ID{idDone, idRunning, idWaiting}, []job.Node{"n1", "n2"}},
		"by trouble":      {[]string{"tab", "s", "s", "s"}, []job.ID{idRunning, idWaiting, idDone}, []job.Node{"n2", "n1"}},
		"filter by key":   {[]string{"/", "-", "4", "2", "4", "3", "enter"}, []job.ID{idDone}, nil},
		"filter by state": {[]string{"/", "D", "O", "N", "backspace", "backspace", "R"}, nil, []job.Node{"n2"}},
		"filter cleared":  {[]string{"/", "x", "esc"}, []job.ID{idRunning, idWaiting, idDone}, []job.Node{"n1", "n2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScreen(t, 100, 30)
			s.tick()
			s.keys(c.keys...)
			var jobs []job.ID
			for _, j := range s.shownJobs() {
				jobs = append(jobs, j.ID)
			}
			var nodes []job.Node
			for _, n := range s.shownNodes() {
				nodes = append(nodes, n.Node)
			}
			if diff := cmp.Diff(c.jobs, jobs) + cmp.Diff(c.nodes, nodes); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
		})
	}
}

// Many nodes and jobs scroll; the chosen ones are always on the screen.
func TestChosenLineIsAlwaysOnTheScreen(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24)
	node, summary := s.fake.nodes.Nodes[0], s.fake.jobs.Jobs[0]
	s.fake.nodes.Nodes, s.fake.jobs.Jobs = nil, nil
	for i := range 50 {
		node.Node, summary.ID = job.Node(fmt.Sprintf("node-%02d", i)), job.ID(fmt.Sprintf("job-%02d", i))
		s.fake.nodes.Nodes, s.fake.jobs.Jobs = append(s.fake.nodes.Nodes, node), append(s.fake.jobs.Jobs, summary)
	}
	s.tick()
	for range 50 {
		if text := s.text(); !strings.Contains(text, "> "+string(s.job)) {
			t.Fatalf("%s is not shown:\n%s", s.job, text)
		}
		s.keys("down")
	}
	s.keys("tab")
	for range 50 {
		if text := s.text(); !strings.Contains(text, "> "+string(s.node)) {
			t.Fatalf("%s is not shown:\n%s", s.node, text)
		}
		s.keys("down")
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := DefaultConfig()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Config){
		"every": func(c *Config) { c.Every = 0 }, "within": func(c *Config) { c.Within = 2 * time.Hour },
		"now": func(c *Config) { c.Now = nil }, "zone": func(c *Config) { c.Zone = nil },
	} {
		c := DefaultConfig()
		spoil(&c)
		if fault.KindOf(c.Validate()) != fault.Invalid {
			t.Errorf("%s: %v", name, c.Validate())
		}
	}
}
