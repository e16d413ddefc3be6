package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/ledger"
)

// drawPlan makes any small plan that is possible: a profile of up to two circuits, up to four nodes, some jobs.
func drawPlan(t *rapid.T) (*Profile, *Rack, *Load) {
	mib := func(name string, most int) bytesize.Bytes {
		return bytesize.Bytes(rapid.IntRange(1, most).Draw(t, name)) * bytesize.MiB
	}
	second := func(name string, least float64) float64 { return rapid.Float64Range(least, 30).Draw(t, name) }
	p := &Profile{Name: "drawn"}
	for i := range rapid.IntRange(1, 2).Draw(t, "circuits") {
		alone := second("alone", 0.1)
		sizes := Sizes{}
		for _, stage := range []*ledger.Amounts{&sizes.Synthesizing, &sizes.Sealed, &sizes.Proving, &sizes.Finishing} {
			shm := mib("shm", 256)
			*stage = ledger.Amounts{ledger.PoolRAM: shm + mib("ram", 512), ledger.PoolSHM: shm}
		}
		p.Circuits = append(p.Circuits, Circuit{
			Name: fmt.Sprint("c", i), Partitions: rapid.IntRange(1, 6).Draw(t, "partitions"),
			Synthesis: Synthesis{AtOnce: []int{1, 4}, Seconds: []float64{alone, alone + second("slower", 0)}, Cores: 2},
			Devices: []DeviceTimes{
				{Kind: "fast", Seconds: second("fast", 0.1), FinishSeconds: second("finish", 0), GoneSeconds: second("gone", 0)},
				{Kind: "slow", Seconds: second("slow", 0.1)},
			},
			Sizes: sizes, Assets: []Asset{{Name: "srs", Pool: "ram", Bytes: mib("srs", 2048)},
				{Name: "table", Pool: vram, Bytes: mib("table", 1024)}},
		})
	}
	r := &Rack{Policy: Policy{Name: rapid.SampledFrom([]string{PolicyRack, PolicyBox}).Draw(t, "policy")}}
	r.Policy.Warm = rapid.Bool().Draw(t, "warm")
	for i := range rapid.IntRange(1, 2).Draw(t, "kinds") {
		r.Nodes = append(r.Nodes, NodeKind{
			Name: fmt.Sprint("n", i), Count: rapid.IntRange(1, 2).Draw(t, "nodes"),
			Cores: rapid.IntRange(1, 16).Draw(t, "cores"),
			RAM:   8*bytesize.GiB + mib("memory", 4096), SynthSlots: rapid.IntRange(0, 4).Draw(t, "slots"),
			Devices: []DeviceKind{{
				Kind: rapid.SampledFrom([]string{"fast", "slow"}).Draw(t, "kind"), Count: rapid.IntRange(1, 2).Draw(t, "devices"),
				VRAM: 4 * bytesize.GiB, Feeders: rapid.IntRange(0, 3).Draw(t, "feeders"),
			}},
		})
	}
	r.fill()
	l := &Load{}
	for range rapid.IntRange(1, 2).Draw(t, "loads") {
		l.Jobs = append(l.Jobs, JobKind{
			Circuit: p.Circuits[rapid.IntRange(0, len(p.Circuits)-1).Draw(t, "circuit")].Name,
			Count:   rapid.IntRange(1, 8).Draw(t, "jobs"), Priority: rapid.IntRange(0, 2).Draw(t, "priority"),
			Every:    Duration(rapid.IntRange(0, 20).Draw(t, "every")) * Duration(time.Second),
			InFlight: rapid.IntRange(0, 3).Draw(t, "in flight"),
		})
	}
	for _, check := range []func() error{p.Validate, r.Validate, l.Validate} {
		if err := check(); err != nil {
			t.Fatal(err)
		}
	}
	return p, r, l
}

// Whatever the plan: every partition is proved once; stages follow each other and take their times; no slot, feeder or
// device has more than it may; under policy rack no pool has more booked than there is (invariant 1); all that is left
// in the end are assets (invariant 2); and the same plan gives the same run.
func TestAnyPlanConservesWork(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, r, l := drawPlan(t)
		result, err := Simulate(context.Background(), p, r, l)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Simulate(context.Background(), p, r, l)
		if err != nil {
			t.Fatal(err)
		}
		if result.Fingerprint != again.Fingerprint || !slices.Equal(result.spans, again.spans) {
			t.Fatal("the same plan gives two runs")
		}
		if result.Killed != nil {
			return
		}
		checkWork(t, p, l, result)
		for _, m := range result.machines {
			checkMachine(t, r, result, m)
		}
	})
}

func checkWork(t *rapid.T, p *Profile, l *Load, result *Result) {
	want, jobs := 0, 0
	for i := range l.Jobs {
		c, err := p.circuit(l.Jobs[i].Circuit)
		if err != nil {
			t.Fatal(err)
		}
		want += c.Partitions * l.Jobs[i].Count
		jobs += l.Jobs[i].Count
	}
	if result.Jobs != jobs || result.Partitions != want || len(result.spans) != want {
		t.Fatalf("%d of %d jobs, %d of %d partitions, %d spans", result.Jobs, jobs, result.Partitions, want,
			len(result.spans))
	}
	seen := map[[2]int]bool{}
	for _, s := range result.spans {
		if seen[[2]int{s.Job, s.Partition}] {
			t.Fatalf("partition %d of job %d is proved twice", s.Partition, s.Job)
		}
		seen[[2]int{s.Job, s.Partition}] = true
		steps := []time.Duration{s.Admitted, s.Started, s.Sealed, s.Taken, s.Proving, s.Proved, s.Ended, s.Gone}
		if !slices.IsSorted(steps) {
			t.Fatalf("stages out of order: %v", steps)
		}
	}
	idle := 0.0
	for _, part := range result.IdleBecause {
		idle += part
	}
	if math.Abs(idle-result.DeviceIdle) > 0.002 {
		t.Fatalf("devices are idle for %v, by cause for %v", result.DeviceIdle, idle)
	}
}

func checkMachine(t *rapid.T, r *Rack, result *Result, m *machine) {
	most := func(from, to func(*Span) time.Duration, of func(*Span) bool) int {
		type edge struct {
			at time.Duration
			by int
		}
		var edges []edge
		for i := range result.spans {
			if s := &result.spans[i]; s.Node == m.index && of(s) {
				edges = append(edges, edge{from(s), 1}, edge{to(s), -1})
			}
		}
		slices.SortFunc(edges, func(a, b edge) int {
			if a.at != b.at {
				return int(min(1, max(-1, a.at-b.at)))
			}
			return a.by - b.by // ends before beginnings
		})
		now, peak := 0, 0
		for _, e := range edges {
			now += e.by
			peak = max(peak, now)
		}
		return peak
	}
	started := func(s *Span) time.Duration { return s.Started }
	sealed := func(s *Span) time.Duration { return s.Sealed }
	if n := most(started, sealed, func(*Span) bool { return true }); n > m.kind.SynthSlots {
		t.Fatalf("%s: %d syntheses at once in %d slots", m.name, n, m.kind.SynthSlots)
	}
	for _, d := range m.devices {
		on := func(s *Span) bool { return s.Device == d.index }
		proving := func(s *Span) time.Duration { return s.Proving }
		proved := func(s *Span) time.Duration { return s.Proved }
		if n := most(proving, proved, on); n > 1 {
			t.Fatalf("%s: %d proofs at once", d.name, n)
		}
		taken := func(s *Span) time.Duration { return s.Taken }
		if n := most(taken, proved, on); n > d.kind.Feeders {
			t.Fatalf("%s: %d partitions in the hands of %d feeders", d.name, n, d.kind.Feeders)
		}
		admitted := func(s *Span) time.Duration { return s.Admitted }
		if n := most(admitted, taken, on); r.Policy.Permit == PermitDelivery && n > m.kind.SynthSlots {
			t.Fatalf("%s: %d permits out of %d", d.name, n, m.kind.SynthSlots)
		}
	}
	assets := ledger.Amounts{}
	for key, have := range m.assets {
		assets[ledger.Pool(key.pool)] += have.bytes
	}
	for _, pool := range m.pools {
		if m.held[pool].now != assets[pool] || m.booked[pool].now != assets[pool] {
			t.Fatalf("%s: in the end %s of %s are held and %s booked; assets are %s", m.name, m.held[pool].now, pool,
				m.booked[pool].now, assets[pool])
		}
		if r.Policy.Name == PolicyRack && m.booked[pool].peak > m.capacity[pool] {
			t.Fatalf("%s: %s of %s booked", m.name, m.booked[pool].peak, pool)
		}
		if m.held[pool].peak > m.booked[pool].peak {
			t.Fatalf("%s: more of %s is held than booked", m.name, pool)
		}
	}
}

// A single partition takes the sum of its stages; loading assets delays the device, and warm ones don't.
func TestSinglePartitionTakesItsStages(t *testing.T) {
	t.Parallel()
	p := &Profile{Name: "one", Circuits: []Circuit{{
		Name: "c", Partitions: 1, Synthesis: Synthesis{AtOnce: []int{1}, Seconds: []float64{2}, Cores: 1},
		Devices: []DeviceTimes{{Kind: "gpu", Seconds: 3, FinishSeconds: 0.5, GoneSeconds: 1}},
		Sizes:   Sizes{Synthesizing: ledger.Amounts{ledger.PoolRAM: bytesize.GiB}},
		Assets:  []Asset{{Name: "srs", Pool: "ram", Bytes: 10 * bytesize.GiB}},
	}}}
	for warm, want := range map[bool]float64{true: 5.5, false: 13.5} {
		r := &Rack{Policy: Policy{Name: PolicyRack, Warm: warm}, Nodes: []NodeKind{{
			Name: "n", Count: 1, Cores: 4, RAM: 16 * bytesize.GiB, Devices: []DeviceKind{{Kind: "gpu", Count: 1}},
		}}}
		r.fill()
		result, err := Simulate(t.Context(), p, r, &Load{Jobs: []JobKind{{Circuit: "c", Count: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		ram := result.ramOf()
		if result.Makespan != want || ram.Booked != 11*bytesize.GiB || ram.Held != ram.Booked {
			t.Errorf("warm %v: %v s, want %v; %s booked, %s held", warm, result.Makespan, want, ram.Booked, ram.Held)
		}
		if !warm && result.Bottleneck != string(CauseAssets) {
			t.Errorf("the bottleneck is %s: %v", result.Bottleneck, result.IdleBecause)
		}
	}
}

// The bottleneck is named for what it is, and one more node helps where it is short.
func TestBottleneckIsNamed(t *testing.T) {
	t.Parallel()
	p, err := OpenShipped("one-box-32gib")
	if err != nil {
		t.Fatal(err)
	}
	rack := func(slots int, ram bytesize.Bytes, ahead time.Duration) *Rack {
		r := oneBox(1, slots, 2, ram, "")
		r.Policy = Policy{Name: PolicyRack, Warm: true, WorkAhead: Duration(ahead)}
		return r
	}
	for name, test := range map[string]struct {
		rack *Rack
		want string
	}{
		"devices":    {rack(16, 755*bytesize.GiB, time.Minute), "devices"},
		"work ahead": {rack(16, 755*bytesize.GiB, time.Second), "work ahead"},
		"synthesis":  {rack(2, 755*bytesize.GiB, time.Minute), "synthesis"},
		"memory:ram": {rack(16, 128*bytesize.GiB, time.Minute), "memory:ram"},
		"workers":    {oneBox(1, 4, 2, boxRAM, ""), "workers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := Make(t.Context(), p, test.rack, porepJobs(20))
			if err != nil {
				t.Fatal(err)
			}
			if report.Result.Bottleneck != test.want {
				t.Errorf("is %s: idle %v because of %v", report.Result.Bottleneck, report.Result.DeviceIdle,
					report.Result.IdleBecause)
			}
			if m := report.More[0]; m.Gain < 0.8*report.Result.ProofsPerHour {
				t.Errorf("a second box brings %v proofs an hour beside %v", m.Gain, report.Result.ProofsPerHour)
			}
		})
	}
}

// Costs are prices over years and power over the time, by hand: 36 proofs an hour at 1,000 W and 8,766 in one year.
func TestCosts(t *testing.T) {
	t.Parallel()
	p := &Profile{Name: "one", Circuits: []Circuit{{
		Name: "c", Partitions: 1, Synthesis: Synthesis{AtOnce: []int{1}, Seconds: []float64{1e-6}, Cores: 1},
		Devices: []DeviceTimes{{Kind: "gpu", Seconds: 100}},
	}}}
	r := &Rack{
		Policy: Policy{Name: PolicyRack}, Cost: Cost{Currency: "EUR", Years: 1, PerKWh: 0.36},
		Nodes: []NodeKind{{Name: "n", Count: 1, Cores: 4, RAM: 16 * bytesize.GiB, Price: 8000, Watts: 700,
			Devices: []DeviceKind{{Kind: "gpu", Count: 1, Price: 766, Watts: 300, IdleWatts: 10}}}},
	}
	r.fill()
	result, err := Simulate(t.Context(), p, r, &Load{Jobs: []JobKind{{Circuit: "c", Count: 10}}})
	if err != nil {
		t.Fatal(err)
	}
	c := result.Cost
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-5*want }
	if c == nil || !near(c.MachinesPerProof, 1.0/36) || !near(c.PowerPerProof, 0.01) || !near(c.KWhPerProof, 1.0/36) ||
		!near(c.PerProof, 1.0/36+0.01) || c.PriceTotal != 8766 || !near(c.MeanWatts, 1000) {
		t.Errorf("costs are %+v at %v proofs an hour", c, result.ProofsPerHour)
	}
}

// The client of boxes keeps its bound of jobs in flight, and gives a job to the box with the fewest.
func TestBoxesGetWholeSectors(t *testing.T) {
	t.Parallel()
	p, err := OpenShipped("one-box-32gib")
	if err != nil {
		t.Fatal(err)
	}
	load := porepJobs(7)
	load.Jobs[0].InFlight = 3
	result, err := Simulate(t.Context(), p, oneBox(3, 12, 2, boxRAM, ""), load)
	if err != nil {
		t.Fatal(err)
	}
	home := map[int]int{}
	for _, s := range result.spans {
		if node, known := home[s.Job]; known && node != s.Node {
			t.Fatalf("job %d is on two boxes", s.Job)
		}
		home[s.Job] = s.Node
	}
	if home[0] == home[1] || home[1] == home[2] || home[0] == home[2] {
		t.Errorf("the first three jobs are on boxes %d, %d, %d", home[0], home[1], home[2])
	}
	if result.JobLongest > 1.1*result.JobMedian {
		t.Errorf("with a box to itself a job takes %v s, one takes %v", result.JobMedian, result.JobLongest)
	}
}

// What takes longer than a plan may is refused, however long it is, and quickly.
func TestEndlessPlanIsRefused(t *testing.T) {
	t.Parallel()
	for _, cores := range []float64{1, CoresMax} {
		p := &Profile{Name: "slow", Circuits: []Circuit{{
			Name: "c", Partitions: 1024, Devices: []DeviceTimes{{Kind: "gpu", Seconds: SecondsMax}},
			Synthesis: Synthesis{AtOnce: []int{1, 2}, Seconds: []float64{1, SecondsMax}, Cores: cores},
		}}}
		r := &Rack{Policy: Policy{Name: PolicyBox}, Nodes: []NodeKind{{
			Name: "n", Count: 1, Cores: 1, RAM: bytesize.GiB, SynthSlots: SlotsMax,
			Devices: []DeviceKind{{Kind: "gpu", Count: 1}},
		}}}
		r.fill()
		if err := errors.Join(p.Validate(), r.Validate()); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err := Simulate(t.Context(), p, r, &Load{Jobs: []JobKind{{Circuit: "c", Count: 1}}})
		if fault.KindOf(err) != fault.Invalid || time.Since(start) > time.Minute {
			t.Errorf("gives %v after %s", err, time.Since(start))
		}
	}
}

// A plan ends when its context does.
func TestPlanCanBeInterrupted(t *testing.T) {
	t.Parallel()
	p, err := OpenShipped("one-box-32gib")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Make(ctx, p, oneBox(1, 12, 2, boxRAM, ""), porepJobs(5)); !errors.Is(err, context.Canceled) {
		t.Errorf("gives %v", err)
	}
}

// A picture is well-formed, has its axes, and stays small however long the plan; results are JSON.
func TestPicture(t *testing.T) {
	t.Parallel()
	p, err := OpenShipped("one-box-32gib")
	if err != nil {
		t.Fatal(err)
	}
	for _, jobs := range []int{1, 400} {
		result, err := Simulate(t.Context(), p, oneBox(6, 12, 2, boxRAM, ""), porepJobs(jobs))
		if err != nil {
			t.Fatal(err)
		}
		for name, write := range map[string]func(io.Writer, string) error{"svg": result.WriteSVG, "html": result.WriteHTML} {
			var out bytes.Buffer
			if err := write(&out, "a <title> & more"); err != nil {
				t.Fatal(err)
			}
			text := out.String()
			if name == "svg" {
				decoder := xml.NewDecoder(strings.NewReader(text))
				for {
					if _, err := decoder.Token(); errors.Is(err, io.EOF) {
						break
					} else if err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, want := range []string{"a &lt;title&gt; &amp; more", "gpu00 proves", "100 GiB</text>", " s</text>",
				"memory ram of 755 GiB", "4 of 6 nodes", "job 0, partition 0: proving"} {
				if !strings.Contains(text, want) {
					t.Errorf("%s of %d jobs has no %q", name, jobs, want)
				}
			}
			if len(text) > 3<<20 {
				t.Errorf("%s of %d jobs has %d bytes", name, jobs, len(text))
			}
		}
		if _, err := json.Marshal(result); err != nil {
			t.Error(err)
		}
	}
}
