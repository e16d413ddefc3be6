//go:build toy

package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/prover/simdevice"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "engine" {
		os.Exit(engine.Main())
	}
	goleak.VerifyTestMain(m)
}

func params(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	c := toy.Circuit()
	_, err := generate.ToFolder(t.Context(), folder, c, generate.FromSeed("t", c.ID()), generate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func config(folder string, sim *simdevice.Config) engine.Config {
	return engine.Config{
		Command:  engine.DefaultCommand(),
		Setup:    engine.Setup{Device: "cpu", Name: "cpu", Params: folder, Workers: 1, Simulate: sim},
		StartMax: time.Minute, StopMax: 5 * time.Second, StallMax: time.Minute, StageMax: time.Minute,
		Log: zerolog.Nop(),
	}
}

func spawn(t *testing.T, c engine.Config) *engine.Engine {
	t.Helper()
	e, err := engine.Spawn(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// sealed is a toy segment of a new attempt.
func sealed(t *testing.T, seed uint64) (*os.File, engine.Work) {
	t.Helper()
	w, err := toy.Circuit().Decode(toy.Slice(seed))
	if err != nil {
		t.Fatal(err)
	}
	return sealedOf(t, toy.Circuit(), w)
}

// sealedOf is a segment of a new attempt at a circuit.
func sealedOf(t *testing.T, c circuit.Circuit, w circuit.Witness) (*os.File, engine.Work) {
	t.Helper()
	spill, err := handoff.New(handoff.NewConfig(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { spill.Close() })
	layout, err := compact.LayoutOf(c)
	if err != nil {
		t.Fatal(err)
	}
	id, err := job.NewID()
	if err != nil {
		t.Fatal(err)
	}
	a := job.Attempt{Job: id, Partition: 3, Fence: 1}
	spec := handoff.Spec{Attempt: a, Circuit: c.ID(), Bytes: bytesize.Bytes(layout.Bytes())}
	draft, err := spill.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer draft.Close()
	work := compact.Job{Circuit: c, Witness: w, Partition: a.Partition}
	if _, err := work.Synthesize(t.Context(), draft.Memory()); err != nil {
		t.Fatal(err)
	}
	if err := draft.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	segment, err := spill.Open(t.Context(), handoff.Want{Attempt: a, Circuit: c.ID()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { segment.Close() })
	return segment.File(), engine.Work{Circuit: c.ID(), Attempt: a}
}

func verify(t *testing.T, key []byte, seed uint64, proof []byte) {
	t.Helper()
	vk, err := srs.ParseKey(key)
	if err != nil {
		t.Fatal(err)
	}
	w, err := toy.Circuit().Decode(toy.Slice(seed))
	if err != nil {
		t.Fatal(err)
	}
	p, err := groth16.ParseProof(proof)
	if err != nil {
		t.Fatal(err)
	}
	if err := groth16.Verify(vk, w.PublicInputs(), p); err != nil {
		t.Error(err)
	}
}

func prove(ctx context.Context, e *engine.Engine, f *os.File, w engine.Work) (engine.Proved, error) {
	p, err := begin(ctx, e, f, w)
	if err != nil {
		return engine.Proved{}, err
	}
	return p.Finish(ctx, func() {})
}

func begin(ctx context.Context, e *engine.Engine, f *os.File, w engine.Work) (*engine.Proof, error) {
	p, err := e.Prepare(ctx, w, f)
	if err == nil {
		err = p.Start(ctx)
	}
	return p, err
}

func TestEngineProvesSegmentsInAnotherProcess(t *testing.T) {
	t.Parallel()
	e := spawn(t, config(params(t), nil))
	if e.PID() == os.Getpid() || e.PID() == 0 {
		t.Errorf("engine is process %d", e.PID())
	}
	loaded, err := e.Load(t.Context(), "toy", nil)
	if err != nil {
		t.Fatal(err)
	}
	first, firstWork := sealed(t, 1)
	second, secondWork := sealed(t, 2)
	p1, err := begin(t.Context(), e, first, firstWork)
	if err != nil {
		t.Fatal(err)
	}
	p2, err := begin(t.Context(), e, second, secondWork) // the first is pending
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Evict(t.Context(), "toy"); fault.KindOf(err) != fault.Conflict {
		t.Errorf("evict while in use: %v", err)
	}
	for seed, p := range map[uint64]*engine.Proof{1: p1, 2: p2} {
		asked := 0
		got, err := p.Finish(t.Context(), func() { asked++ })
		if err != nil || asked != 1 {
			t.Fatalf("asked %d times, %v", asked, err)
		}
		verify(t, loaded.Key, seed, got.Proof)
	}
	if err := e.Evict(t.Context(), "toy"); err != nil {
		t.Error(err)
	}
	got, err := prove(t.Context(), e, first, firstWork) // loads again
	if err != nil {
		t.Fatal(err)
	}
	verify(t, loaded.Key, 1, got.Proof)
	if err := e.Canary(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestEngineNamesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	e := spawn(t, config(folder, nil))
	if _, err := e.Load(t.Context(), "toy", nil); fault.KindOf(err) != fault.NotFound ||
		!strings.Contains(err.Error(), toy.Circuit().ParamsName()+".params") {
		t.Errorf("missing parameters: %v", err)
	}
	if _, err := e.Load(t.Context(), "nothing", nil); fault.KindOf(err) != fault.Invalid {
		t.Errorf("unknown circuit: %v", err)
	}
	good := params(t)
	name := toy.Circuit().ParamsName() + ".params"
	data, err := os.ReadFile(filepath.Join(good, name))
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	for _, file := range []string{"parameters.json"} {
		text, err := os.ReadFile(filepath.Join(good, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = e.Load(t.Context(), "toy", nil)
	if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), name) {
		t.Errorf("B07: changed parameters: %v", err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Load(t.Context(), "toy", nil); err != nil {
		t.Errorf("B06: after the file has come: %v", err)
	}
}

// B109: whoever waits for an engine to start can be stopped, and an engine that never gets ready is given up.
func TestB109StartOfAnEngineEndsWhenAsked(t *testing.T) {
	t.Parallel()
	c := config(t.TempDir(), nil)
	c.Command = []string{"sleep", "60"}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	late := c
	late.StartMax = 100 * time.Millisecond
	for name, try := range map[string]func() error{
		"stopped": func() error { _, err := engine.Spawn(ctx, c); return err },
		"late":    func() error { _, err := engine.Spawn(t.Context(), late); return err },
	} {
		ended := make(chan error, 1)
		go func() { ended <- try() }()
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("%s: it is ready", name)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: still starting", name)
		}
	}
}

func TestEngineRefusesBadSegments(t *testing.T) {
	t.Parallel()
	e := spawn(t, config(params(t), nil))
	f, w := sealed(t, 1)
	other := w
	other.Attempt.Partition = 1
	newer := w
	newer.Attempt.Fence++
	for name, work := range map[string]engine.Work{
		"other circuit": {Attempt: w.Attempt, Circuit: "porep-2KiB"}, "other partition": other, "other fence": newer,
	} {
		if _, err := prove(t.Context(), e, f, work); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
	writable, err := os.OpenFile(f.Name(), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writable.Close()
	const inTheVectors = 10000
	if _, err := writable.WriteAt([]byte{0xff}, inTheVectors); err != nil {
		t.Fatal(err)
	}
	if _, err := prove(t.Context(), e, f, w); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("changed byte: %v", err)
	}
}

func TestB26EngineCrashNamesTheSignal(t *testing.T) {
	t.Parallel()
	folder := params(t)
	for how, want := range map[string]string{
		"kill": "killed", "abort": "SIGABRT", "segv": "SIGSEGV", "bus": "SIGBUS",
		"panic": "panic: simdevice: ordered panic",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			e := spawn(t, config(folder, &simdevice.Config{Failures: []string{how + "@finish#1"}}))
			f, w := sealed(t, 1)
			_, err := prove(t.Context(), e, f, w)
			var crash *engine.Crash
			if !errors.As(err, &crash) || !strings.Contains(crash.Cause, want) || crash.Hung {
				t.Fatalf("got %v, want a crash with %q", err, want)
			}
			if fault.KindOf(err) != fault.Device {
				t.Errorf("kind %s", fault.KindOf(err))
			}
			if how != "kill" && len(crash.Lines) == 0 {
				t.Error("no last words")
			}
		})
	}
}

// A panic ends its engine: whoever asks it for something gets an answer, nobody is left waiting (TestMain looks for
// goroutines), and the next engine proves.
func TestB27APanicLeavesNobodyWaiting(t *testing.T) {
	t.Parallel()
	folder := params(t)
	e := spawn(t, config(folder, &simdevice.Config{Failures: []string{"panic@start#1"}}))
	waiting, work := sealed(t, 2)
	second, err := e.Prepare(t.Context(), work, waiting)
	if err != nil {
		t.Fatal(err)
	}
	f, w := sealed(t, 1)
	_, err = prove(t.Context(), e, f, w)
	var crash *engine.Crash
	if !errors.As(err, &crash) || !strings.Contains(crash.Cause, "panic: simdevice: ordered panic") {
		t.Fatalf("got %v", err)
	}
	_ = e.Progress()
	for what, ask := range map[string]func() error{
		"start":  func() error { return second.Start(t.Context()) },
		"load":   func() error { _, err := e.Load(t.Context(), "toy", nil); return err },
		"canary": func() error { return e.Canary(t.Context()) },
		"evict":  func() error { return e.Evict(t.Context(), "toy") },
	} {
		if err := ask(); !errors.As(err, &crash) {
			t.Errorf("%s of an engine that is gone: %v", what, err)
		}
	}
	second.Drop()
	e.Close()
	next := spawn(t, config(folder, nil))
	loaded, err := next.Load(t.Context(), "toy", nil)
	if err != nil {
		t.Fatal(err)
	}
	f, w = sealed(t, 3)
	got, err := prove(t.Context(), next, f, w)
	if err != nil {
		t.Fatal(err)
	}
	verify(t, loaded.Key, 3, got.Proof)
}

func TestB23HungAndFrozenEnginesAreKilled(t *testing.T) {
	t.Parallel()
	folder := params(t)
	for _, how := range []string{"loop", "freeze"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := config(folder, &simdevice.Config{Failures: []string{how + "@start#1"}})
			c.StallMax = 1500 * time.Millisecond
			e := spawn(t, c)
			f, w := sealed(t, 1)
			_, err := prove(t.Context(), e, f, w)
			var crash *engine.Crash
			if !errors.As(err, &crash) || !crash.Hung || !strings.Contains(crash.Cause, "no progress") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestDroppedProofsLetGoOfTheirSegments(t *testing.T) {
	t.Parallel()
	e := spawn(t, config(params(t), &simdevice.Config{StartTime: time.Hour}))
	f, w := sealed(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := prove(ctx, e, f, w); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	limit := time.Now().Add(time.Minute)
	for {
		maps, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(e.PID()), "maps"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(maps), f.Name()) {
			return
		}
		if time.Now().After(limit) {
			t.Fatal("engine still maps the segment of a dropped proof")
		}
		time.Sleep(5 * time.Millisecond)
	}
}
