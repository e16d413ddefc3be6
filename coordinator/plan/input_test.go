package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

const goodRack = `
[[nodes]]
name = "big"
count = 2
cores = 32
ram = "128GiB"
[[nodes.devices]]
kind = "rtx-5070-ti"
count = 2
vram = "16GiB"
`

// Every shipped profile can be read, says where its numbers come from, and is found by its file's name.
func TestShippedProfiles(t *testing.T) {
	t.Parallel()
	if len(Shipped()) < 3 {
		t.Errorf("shipped are %v", Shipped())
	}
	for _, name := range Shipped() {
		p, err := OpenShipped(name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name != name || len(p.About) < 100 {
			t.Errorf("profile %s calls itself %q, about %q", name, p.Name, p.About)
		}
	}
	if _, err := OpenShipped("../profile"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an unknown profile gives %v", err)
	}
}

// What is not given gets the default that is documented.
func TestRackDefaults(t *testing.T) {
	t.Parallel()
	r, err := ReadRack(strings.NewReader(goodRack), "test")
	if err != nil {
		t.Fatal(err)
	}
	want := &Rack{Policy: Policy{Name: PolicyRack}, Nodes: []NodeKind{{
		Name: "big", Count: 2, Cores: 32, RAM: 128 * bytesize.GiB, SHM: 64 * bytesize.GiB, SynthSlots: 8,
		LoadRate: bytesize.GiB,
		Devices:  []DeviceKind{{Kind: "rtx-5070-ti", Count: 2, VRAM: 16 * bytesize.GiB, Feeders: 1}},
	}}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

// A wrong input is refused as invalid, naming the file's key, with a hint; nothing panics.
func TestWrongInputsAreRefused(t *testing.T) {
	t.Parallel()
	profile, err := ShippedText("one-box-32gib")
	if err != nil {
		t.Fatal(err)
	}
	swap := func(text, from, to string) string {
		if !strings.Contains(text, from) {
			t.Fatalf("%q is not in the text", from)
		}
		return strings.Replace(text, from, to, 1)
	}
	nodes := func(from, to string) func() error {
		return func() error {
			_, err := ReadRack(strings.NewReader(swap(goodRack, from, to)), "n.toml")
			return err
		}
	}
	prof := func(from, to string) func() error {
		return func() error {
			_, err := ReadProfile(strings.NewReader(swap(string(profile), from, to)), "p.toml")
			return err
		}
	}
	jobs := func(text string) func() error {
		return func() error {
			_, err := ReadLoad(strings.NewReader(text), "j.toml")
			return err
		}
	}
	for name, test := range map[string]struct {
		read func() error
		want string
	}{
		"unknown key":            {nodes("cores = 32", "coers = 32"), `line 5: unknown key "nodes.coers"`},
		"broken file":            {nodes("cores = 32", "cores = "), "line 5"},
		"too large":              {nodes("cores = 32", "# "+strings.Repeat("x", FileBytesMax)), "over the limit"},
		"no nodes":               {nodes("count = 2\ncores", "count = 0\ncores"), "number of nodes is 0"},
		"too many nodes":         {nodes("count = 2\ncores", "count = 257\ncores"), "count is 257"},
		"negative count":         {nodes("count = 2\ncores", "count = -1\ncores"), "count is -1"},
		"no cores":               {nodes("cores = 32", ""), "cores is 0"},
		"no memory":              {nodes(`ram = "128GiB"`, ""), "ram is 0"},
		"memory without sense":   {nodes(`"128GiB"`, `"much"`), "not a number"},
		"shm over ram":           {nodes("cores = 32", "cores = 32\nshm = \"129GiB\""), "shm is more than ram"},
		"bad name":               {nodes(`"big"`, `"Big Node"`), "lower-case"},
		"too many devices":       {nodes("count = 2\nvram", "count = 17\nvram"), "devices.count is 17"},
		"unknown policy":         {nodes("[[nodes]]\n", "[policy]\nname = \"fifo\"\n[[nodes]]\n"), "none of rack, box"},
		"a setting of no effect": {nodes("[[nodes]]\n", "[policy]\npermit = \"delivery\"\n[[nodes]]\n"), "no effect"},
		"look ahead of a box": {
			nodes("[[nodes]]\n", "[policy]\nname = \"box\"\nwork_ahead = \"3s\"\n[[nodes]]\n"), "no effect"},
		"no duration":       {nodes("[[nodes]]\n", "[policy]\nwork_ahead = \"soon\"\n[[nodes]]\n"), "no duration"},
		"price of nan":      {nodes("cores = 32", "cores = 32\nprice = nan"), "price is NaN"},
		"negative watts":    {nodes("cores = 32", "cores = 32\nwatts = -1.0"), "watts is -1"},
		"curve of one half": {prof("[29.0, 35.5, 47.5]", "[29.0, 35.5]"), "as many at_once as seconds"},
		"curve that falls":  {prof("[29.0, 35.5, 47.5]", "[29.0, 35.5, 30.0]"), "must not fall"},
		"curve out of turn": {prof("[1, 10, 20]", "[1, 20, 10]"), "must rise"},
		"no time":           {prof("seconds = 3.75", "seconds = 0.0"), "devices.seconds is 0"},
		"endless time":      {prof("seconds = 3.75", "seconds = inf"), "devices.seconds is +Inf"},
		"unknown pool":      {prof(`proving = { ram`, `proving = { rom`), `pool "rom"`},
		"size of a card":    {prof(`proving = { ram`, `proving = { "vram:gpu0"`), "asset, not a size"},
		"asset elsewhere":   {prof(`pool = "ram"`, `pool = "attic"`), `pool "attic"`},
		"no partitions":     {prof("partitions = 10", "partitions = 0"), "partitions is 0"},
		"no jobs":           {jobs(""), "number of entries is 0"},
		"no count":          {jobs("[[jobs]]\ncircuit = \"c\""), "jobs.count is 0"},
		"negative time":     {jobs("[[jobs]]\ncircuit = \"c\"\ncount = 1\nat = \"-1s\""), "jobs.at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := test.read()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("gives %v, want %q", err, test.want)
			}
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("is %s", fault.KindOf(err))
			}
		})
	}
}

// What can never run is refused before anything is simulated, with both numbers.
func TestImpossiblePlansAreRefused(t *testing.T) {
	t.Parallel()
	card, err := OpenShipped("proofrack-card-32gib")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		rack *Rack
		load *Load
		kind fault.Kind
		want string
	}{
		"too little memory": {ourBox(1, 8, 16*bytesize.GiB, "rtx-5070-ti"), porepJobs(1), fault.Exhausted,
			"needs 45.52 GiB of ram; node box has 14.7 GiB"},
		"unknown device": {ourBox(1, 8, 64*bytesize.GiB, "abacus"), porepJobs(1), fault.Invalid, "on any device"},
		"unknown circuit": {ourBox(1, 8, 64*bytesize.GiB, "rtx-5070-ti"),
			&Load{Jobs: []JobKind{{Circuit: "porep-1EiB", Count: 1}}}, fault.Invalid, `knows no circuit "porep-1EiB"`},
		"too many partitions": {ourBox(1, 8, 64*bytesize.GiB, "rtx-5070-ti"), porepJobs(PartitionsMax/10 + 1),
			fault.Invalid, "more than 200000 partitions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Make(t.Context(), card, test.rack, test.load)
			if err == nil || !strings.Contains(err.Error(), test.want) || fault.KindOf(err) != test.kind {
				t.Errorf("gives %s %v, want %s %q", fault.KindOf(err), err, test.kind, test.want)
			}
		})
	}
}

// "Between two points it is linear, beyond the last it goes on with the last slope"; too few cores slow all down.
func TestSynthesisCurve(t *testing.T) {
	t.Parallel()
	s := Synthesis{AtOnce: []int{2, 10, 20}, Seconds: []float64{30, 34, 54}, Cores: 4}
	for _, test := range []struct {
		atOnce, cores int
		want          float64
	}{{1, 400, 30}, {2, 400, 30}, {4, 400, 31}, {10, 400, 34}, {15, 400, 44}, {20, 400, 54}, {30, 400, 74}, {4, 8, 62}} {
		if got := s.seconds(test.atOnce, test.cores); got != test.want {
			t.Errorf("%d at once on %d cores take %v s, want %v", test.atOnce, test.cores, got, test.want)
		}
	}
	one := Synthesis{AtOnce: []int{1}, Seconds: []float64{3}, Cores: 1}
	if got := one.seconds(100, 50); got != 6 {
		t.Errorf("a constant curve gives %v", got)
	}
}

// Durations read back as they were written.
func TestDurationText(t *testing.T) {
	t.Parallel()
	text, err := Duration(90 * time.Second).MarshalText()
	var back Duration
	if err != nil || back.UnmarshalText(text) != nil || time.Duration(back) != 90*time.Second {
		t.Errorf("%s gives %v (%v)", text, back, err)
	}
}

// FuzzRead wants errors, no panics, and no plan that takes more than its limits from files of any content.
func FuzzRead(f *testing.F) {
	f.Add([]byte(goodRack))
	for _, name := range Shipped() {
		text, err := ShippedText(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("[[jobs]]\ncircuit = \"porep-32GiB\"\ncount = 3\nevery = \"1m\"\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, read := range []func() error{
			func() error { _, err := ReadRack(strings.NewReader(string(text)), "fuzz"); return err },
			func() error { _, err := ReadProfile(strings.NewReader(string(text)), "fuzz"); return err },
			func() error { _, err := ReadLoad(strings.NewReader(string(text)), "fuzz"); return err },
		} {
			if err := read(); err != nil && fault.KindOf(err) != fault.Invalid {
				t.Errorf("%v is %s", err, fault.KindOf(err))
			}
		}
	})
}
