package flight_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newRecorder(t testing.TB, config flight.Config) *flight.Recorder {
	t.Helper()
	if config.Process == "" {
		config.Process = "test"
	}
	r, err := flight.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestABufferIsCountedAtOneStage(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, flight.Config{Strict: true})
	b := r.Allocate(ledger.ClassAssignment, 100, flight.Shared, "a.0.1")
	for _, step := range []struct {
		do   func()
		want flight.Stage
	}{
		{func() {}, flight.Allocated}, {b.Seal, flight.Sealed}, {b.HandOver, flight.HandedOver},
		{b.OnDevice, flight.OnDevice}, {b.Release, flight.Released},
	} {
		step.do()
		report := r.Report()
		c := report.Class(ledger.ClassAssignment)
		if diff := cmp.Diff([]flight.StageCount{{Stage: step.want, Pieces: 1, Bytes: 100}}, c.Live); diff != "" {
			t.Error(diff)
		}
		if c.Pieces != 1 || c.Bytes != 100 || report.LiveBytes != 100 || report.Idle() {
			t.Errorf("at %s: %+v", step.want, report)
		}
	}
	b.Gone()
	report := r.Report()
	c := report.Class(ledger.ClassAssignment)
	if len(c.Live) != 0 || c.Pieces != 0 || c.GonePieces != 1 || c.GoneBytes != 100 || c.HighPieces != 1 ||
		c.HighBytes != 100 || report.LiveBytes != 0 || report.HighBytes != 100 || !report.Idle() || len(c.Oldest) != 0 {
		t.Errorf("at the end: %+v", report)
	}
}

func TestHighWaterIsTheMostAtOnce(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, flight.Config{Strict: true})
	end := func(b *flight.Buffer) { b.Release(); b.Gone() }
	a := r.Allocate(ledger.ClassInput, 10, flight.Anonymous, "a")
	b := r.Allocate(ledger.ClassInput, 20, flight.Anonymous, "b")
	end(a)
	s := r.Map(ledger.ClassSRS, 40, flight.File, "toy").Keep()
	end(b)
	report := r.Report()
	input := report.Class(ledger.ClassInput)
	if input.HighPieces != 2 || input.HighBytes != 30 || report.HighBytes != 60 {
		t.Errorf("high water %d pieces, %d bytes, %d of all", input.HighPieces, input.HighBytes, report.HighBytes)
	}
	if c := report.Class(ledger.ClassSRS); !report.Idle() || c.KeptPieces != 1 || c.KeptBytes != 40 {
		t.Errorf("an asset alone is not idle: %+v", report)
	}
	s.Release()
	if report := r.Report(); report.Idle() {
		t.Error("an asset that is being given back counts as idle")
	}
	s.Gone()
	if report := r.Report(); !report.Idle() || report.Class(ledger.ClassSRS).KeptBytes != 0 {
		t.Errorf("after the last asset: %+v", report)
	}
}

// Each wrong transition is counted, changes no count that another owner relies on, and panics where that is asked for.
func TestWrongTransitionsAreDefects(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*flight.Buffer){
		"sealed twice":      func(b *flight.Buffer) { b.Seal(); b.Seal() },
		"handed over twice": func(b *flight.Buffer) { b.HandOver(); b.HandOver() },
		"backwards":         func(b *flight.Buffer) { b.OnDevice(); b.Seal() },
		"released twice":    func(b *flight.Buffer) { b.Release(); b.Release() },
		"gone unreleased":   func(b *flight.Buffer) { b.Gone() },
		"gone twice":        func(b *flight.Buffer) { b.Release(); b.Gone(); b.Gone() },
		"used after gone":   func(b *flight.Buffer) { b.Release(); b.Gone(); b.Seal() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRecorder(t, flight.Config{})
			do(r.Allocate(ledger.ClassEvals, 8, flight.Anonymous, "x"))
			report := r.Report()
			if report.Defects != 1 || !strings.Contains(report.Defect, `evals buffer "x"`) {
				t.Errorf("%d defects, the last %q", report.Defects, report.Defect)
			}
			if c := report.Class(ledger.ClassEvals); c.Pieces < 0 || c.Pieces+c.GonePieces != 1 {
				t.Errorf("counts %+v", c)
			}
			strict := newRecorder(t, flight.Config{Strict: true})
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			do(strict.Allocate(ledger.ClassEvals, 8, flight.Anonymous, "x"))
		})
	}
}

func TestNothingIsRecordedWithoutARecorder(t *testing.T) {
	t.Parallel()
	var r *flight.Recorder
	b := flight.OnHeap(r.Allocate(ledger.ClassInput, 1, flight.Anonymous, "x").Keep(), new(int))
	b.Seal()
	b.Release()
	b.Gone()
	r.Plant(nil)
	r.Collect()
	if got := r.Points(); got != nil {
		t.Errorf("points %v", got)
	}
	if report := r.Report(); len(report.Classes) != 0 {
		t.Errorf("report %+v", report)
	}
}

func TestLagIsFromReleaseToGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(t, flight.Config{Strict: true})
		for _, wait := range []time.Duration{0, 5 * time.Millisecond, 5 * time.Millisecond, 2 * time.Second, time.Hour} {
			b := r.Allocate(ledger.ClassScratch, 1, flight.Declared, "x")
			time.Sleep(time.Minute) // life before the release does not count
			b.Release()
			time.Sleep(wait)
			b.Gone()
		}
		report := r.Report()
		want := []uint64{1, 2, 0, 0, 1, 0, 1}
		if diff := cmp.Diff(want, report.Class(ledger.ClassScratch).Lag); diff != "" {
			t.Error(diff)
		}
		if bounds := flight.LagBounds(); bounds[len(want)-2] != time.Minute {
			t.Errorf("bounds %v", bounds)
		}
	})
}

// collected runs the collector until a recorder says that memory is gone.
func collected(t *testing.T, r *flight.Recorder, collect func()) flight.Report {
	t.Helper()
	for range 12_000 {
		collect()
		if report := r.Report(); report.LiveBytes == 0 {
			return report
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("memory is not gone: %+v", r.Report())
	return flight.Report{}
}

//go:noinline
func onHeap(r *flight.Recorder) (*flight.Buffer, []byte) {
	data := make([]byte, 1<<20)
	return flight.OnHeap(r.Allocate(ledger.ClassInput, 1<<20, flight.Anonymous, "slice"), &data[0]), data
}

// B29: memory of the heap is gone when the collector took it, which an idle process has it do.
func TestB29HeapMemoryIsGoneWhenItWasCollected(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, flight.Config{CollectAfter: time.Nanosecond})
	b, data := onHeap(r)
	b.Release()
	r.Collect()
	time.Sleep(20 * time.Millisecond)
	if report := r.Report(); report.LiveBytes != 1<<20 || report.Idle() {
		t.Errorf("memory that is referenced counts as gone: %+v", report)
	}
	runtime.KeepAlive(data)
	report := collected(t, r, runtime.GC)
	if report.Defects != 0 || report.Class(ledger.ClassInput).GonePieces != 1 {
		t.Errorf("%+v", report)
	}
	b, _ = onHeap(r)
	b.Release()
	if report := collected(t, r, r.Collect); report.Defects != 0 {
		t.Errorf("%+v", report)
	}
}

func TestHeapMemoryThatNobodyReleasedIsADefect(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, flight.Config{})
	_, _ = onHeap(r)
	if report := collected(t, r, runtime.GC); report.Defects != 1 {
		t.Errorf("%+v", report)
	}
}

func TestWhatIsResidentBeyondTheClasses(t *testing.T) {
	t.Parallel()
	resident := flight.Resident{Anonymous: 1000, File: 500, Shared: 200}
	var err error
	r := newRecorder(t, flight.Config{
		Resident: func() (flight.Resident, error) { return resident, err },
		Proofs:   func() (int, int) { return 2, 3 },
	})
	r.Allocate(ledger.ClassEvals, 600, flight.Anonymous, "x")
	r.Map(ledger.ClassSRS, 44000, flight.File, "x") // mapped, hardly resident
	r.Map(ledger.ClassAssignment, 150, flight.Shared, "x")
	r.Allocate(ledger.ClassScratch, 100, flight.Declared, "x")
	report := r.Report()
	if report.RSSBytes != 1700 || report.BeyondBytes != 400+0+50 {
		t.Errorf("resident %d, beyond %d", report.RSSBytes, report.BeyondBytes)
	}
	if report.Pending != 2 || report.Waiting != 3 {
		t.Errorf("pending %d, waiting %d", report.Pending, report.Waiting)
	}
	err = errors.New("no /proc")
	if report := r.Report(); report.RSSBytes != 0 || report.BeyondBytes != 0 || report.LiveBytes == 0 {
		t.Errorf("without /proc: %+v", report)
	}
}

// A planted leak of each class is named, by class and owner, and nothing else is.
func TestAPlantedLeakOfEachClassIsNamed(t *testing.T) {
	t.Parallel()
	for _, class := range ledger.Classes() {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRecorder(t, flight.Config{Strict: true})
				n := 0
				r.Plant(func(c ledger.Class) bool {
					if c == class {
						n++
					}
					return c == class && n == 2
				})
				for _, label := range []string{"first", "second", "third"} {
					for _, c := range ledger.Classes() {
						b := r.Allocate(c, 7, flight.Anonymous, label)
						b.Release()
						b.Gone()
					}
				}
				all := func(string) bool { return true }
				if leaks := flight.Leaks([]flight.Report{r.Report()}, all, time.Second); len(leaks) != 0 {
					t.Errorf("at once: %+v", leaks)
				}
				time.Sleep(2 * time.Second)
				leaks := flight.Leaks([]flight.Report{r.Report()}, all, time.Second)
				if len(leaks) != 1 || leaks[0].Class != class || leaks[0].Label != "second" || leaks[0].Bytes != 7 ||
					leaks[0].Process != "test" || leaks[0].Why == "" {
					t.Errorf("leaks %+v", leaks)
				}
				if report := r.Report(); report.Idle() {
					t.Error("idle with a leak")
				}
			})
		})
	}
}

func TestLeaksAreWhatHasNoOwnerOrIsThereTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(t, flight.Config{Strict: true})
		r.Map(ledger.ClassSRS, 1, flight.File, "twice").Keep()
		r.Map(ledger.ClassSRS, 2, flight.File, "once").Keep()
		for range flight.PiecesMax {
			r.Map(ledger.ClassSRS, 3, flight.File, "twice").Keep()
		}
		r.Map(ledger.ClassAssignment, 4, flight.Shared, "over")
		r.Map(ledger.ClassAssignment, 5, flight.Shared, "runs")
		time.Sleep(time.Minute)
		r.Map(ledger.ClassAssignment, 6, flight.Shared, "new")
		leaks := flight.Leaks([]flight.Report{r.Report()}, func(label string) bool { return label == "runs" }, time.Second)
		var got []string
		for _, l := range leaks {
			got = append(got, string(l.Class)+" "+l.Label+": "+l.Why)
		}
		want := []string{
			"srs twice: the process has it twice", "srs twice: the process has it twice",
			"srs twice: the process has it twice", "assignment over: its owner is over",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// The counts are those of a plain model, whatever is done in whatever order, and the time line ends with them.
func TestCountsAreThoseOfAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, err := flight.New(flight.Config{Process: "p", Points: rapid.IntRange(1, 64).Draw(t, "points")})
		if err != nil {
			t.Fatal(err)
		}
		type piece struct {
			buffer *flight.Buffer
			class  ledger.Class
			bytes  int64
			stage  flight.Stage
		}
		type cell struct {
			class ledger.Class
			stage flight.Stage
		}
		var pieces []*piece
		defects := uint64(0)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if len(pieces) == 0 || rapid.IntRange(0, 3).Draw(t, "new") == 0 {
				p := &piece{class: rapid.SampledFrom(ledger.Classes()).Draw(t, "class"), bytes: rapid.Int64Range(1, 9).Draw(t, "n")}
				p.buffer = r.Allocate(p.class, bytesize.Bytes(p.bytes), flight.Anonymous, "x")
				pieces = append(pieces, p)
				continue
			}
			p := rapid.SampledFrom(pieces).Draw(t, "piece")
			next := rapid.SampledFrom([]flight.Stage{
				flight.Sealed, flight.HandedOver, flight.OnDevice, flight.Released, flight.Gone,
			}).Draw(t, "next")
			b := p.buffer
			map[flight.Stage]func(){
				flight.Sealed: b.Seal, flight.HandedOver: b.HandOver, flight.OnDevice: b.OnDevice,
				flight.Released: b.Release, flight.Gone: b.Gone,
			}[next]()
			if next <= p.stage || next == flight.Gone && p.stage != flight.Released {
				defects++
			}
			p.stage = max(p.stage, next)
		}
		want := map[cell]flight.StageCount{}
		for _, p := range pieces {
			if p.stage != flight.Gone {
				c := want[cell{p.class, p.stage}]
				want[cell{p.class, p.stage}] = flight.StageCount{
					Stage: p.stage, Pieces: c.Pieces + 1, Bytes: c.Bytes + bytesize.Bytes(p.bytes),
				}
			}
		}
		got, drawn := map[cell]flight.StageCount{}, map[cell]flight.StageCount{}
		report := r.Report()
		for _, c := range report.Classes {
			for _, n := range c.Live {
				got[cell{c.Class, n.Stage}] = n
			}
		}
		for _, p := range r.Points() {
			drawn[cell{p.Class, p.Stage}] = flight.StageCount{Stage: p.Stage, Pieces: p.Pieces, Bytes: p.Bytes}
			if p.Pieces == 0 {
				delete(drawn, cell{p.Class, p.Stage})
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || report.Defects != defects {
			t.Fatalf("%d defects, want %d: %s", report.Defects, defects, diff)
		}
		if diff := cmp.Diff(want, drawn); diff != "" {
			t.Fatalf("time line: %s", diff)
		}
		if err := report.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCountsHoldUnderConcurrency(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, flight.Config{Strict: true, Points: 16})
	const writers, rounds = 8, 200
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range rounds {
				b := r.Allocate(ledger.ClassInput, 3, flight.Anonymous, "x")
				b.Seal()
				_ = r.Report()
				b.Release()
				b.Gone()
			}
		})
	}
	all.Wait()
	report := r.Report()
	if c := report.Class(ledger.ClassInput); !report.Idle() || c.GonePieces != writers*rounds ||
		c.HighPieces > writers {
		t.Errorf("%+v", c)
	}
}

func TestStatusAndTimelineAreServed(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, flight.Config{})
	r.Map(ledger.ClassSRS, 5, flight.File, "toy").Keep()
	mux := http.NewServeMux()
	flight.Mount(mux, func() flight.Status { return flight.Status{Reports: []flight.Report{r.Report()}} }, r.Points)
	server := httptest.NewServer(mux)
	defer server.Close()
	get := func(path string) []byte {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", path, answer.Status, err)
		}
		return body
	}
	var status flight.Status
	if err := json.Unmarshal(get("/status"), &status); err != nil {
		t.Fatal(err)
	}
	if len(status.Reports) != 1 || status.Reports[0].Class(ledger.ClassSRS).KeptBytes != 5 {
		t.Errorf("status %+v", status)
	}
	points, err := flight.ReadPoints(strings.NewReader(string(get("/flight/timeline"))))
	if err != nil || len(points) != 1 || points[0].Bytes != 5 || points[0].Process != "test" {
		t.Errorf("points %+v, %v", points, err)
	}
}

func TestPictureIsWellFormedAndNamesWhatItShows(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	points := []flight.Point{
		{At: at, Process: "n1 <synth>", Class: ledger.ClassAssignment, Stage: flight.Allocated, Pieces: 1, Bytes: 1 << 20},
		{At: at.Add(time.Second), Process: "n1 <synth>", Class: ledger.ClassAssignment, Stage: flight.Allocated},
		{
			At: at.Add(time.Second), Process: "n1 <synth>", Class: ledger.ClassAssignment, Stage: flight.Sealed, Pieces: 1,
			Bytes: 1 << 20,
		},
		{At: at, Process: "gpu", Class: ledger.ClassSRS, Stage: flight.Mapped, Pieces: 1, Bytes: 3 << 20},
	}
	var out strings.Builder
	if err := flight.Draw(&out, "a & b", points); err != nil {
		t.Fatal(err)
	}
	var anything struct{}
	if err := xml.Unmarshal([]byte(out.String()), &anything); err != nil {
		t.Errorf("not well formed: %v", err)
	}
	for _, want := range []string{
		"n1 &lt;synth&gt;", "gpu", "assignment", "srs", "1 MiB", "3 MiB", "a &amp; b", "for 1s",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the picture", want)
		}
	}
	if strings.Contains(out.String(), "scratch") {
		t.Error("a class without buffers is in the legend")
	}
	out.Reset()
	if err := flight.Draw(&out, "none", nil); err != nil || !strings.Contains(out.String(), "nothing was recorded") {
		t.Errorf("empty picture: %v", err)
	}
}

// A time line by reports has the same counts, and those of a process that ended are gone.
func TestTimelineFollowsReports(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, flight.Config{})
	line := flight.NewTimeline(100)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	follow := func() {
		at = at.Add(time.Second)
		report := r.Report()
		line.Follow(at, &report)
	}
	b := r.Map(ledger.ClassAssignment, 9, flight.Shared, "x")
	follow()
	follow() // nothing changed
	b.OnDevice()
	follow()
	line.Follow(at.Add(time.Second), &flight.Report{})
	want := []flight.Point{
		{Class: ledger.ClassAssignment, Stage: flight.Mapped, Pieces: 1, Bytes: 9, At: at.Add(-2 * time.Second)},
		{Class: ledger.ClassAssignment, Stage: flight.Mapped, At: at},
		{Class: ledger.ClassAssignment, Stage: flight.OnDevice, Pieces: 1, Bytes: 9, At: at},
		{Class: ledger.ClassAssignment, Stage: flight.OnDevice, At: at.Add(time.Second)},
	}
	for i := range want {
		want[i].Process = "e"
	}
	if diff := cmp.Diff(want, line.Points("e")); diff != "" {
		t.Error(diff)
	}
}

func TestReportsOfOthersAreChecked(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no process":      `{}`,
		"unknown class":   `{"process":"p","classes":[{"class":"other"}]}`,
		"unknown stage":   `{"process":"p","classes":[{"class":"srs","live":[{"stage":"melted"}]}]}`,
		"gone and live":   `{"process":"p","classes":[{"class":"srs","live":[{"stage":"gone"}]}]}`,
		"too many pieces": `{"process":"p","classes":[{"class":"srs","oldest":[{},{},{},{},{}]}]}`,
	} {
		var r flight.Report
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := r.Check(); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []flight.Config{
		{}, {Process: "p", Points: -1}, {Process: "p", Points: flight.PointsMax + 1}, {Process: "p", CollectAfter: -1},
		{Process: strings.Repeat("p", flight.ProcessBytesMax+1)},
	} {
		if _, err := flight.New(c); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestSelfIsThisProcess(t *testing.T) {
	t.Parallel()
	r, err := flight.Self()
	if err != nil || r.Anonymous < 1<<20 || r.File < 1<<20 {
		t.Errorf("%+v, %v", r, err)
	}
}
