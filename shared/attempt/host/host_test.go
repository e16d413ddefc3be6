package host

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/config"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// twoSockets is a host with two NUMA nodes of two processors and 32 GiB each.
func twoSockets() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const node = "sys/devices/system/node/"
	return fstest.MapFS{
		"sys/devices/system/cpu/online": file("0-3\n"), "proc/self/status": file("Cpus_allowed_list:\t0-3\n"),
		"proc/meminfo":     file("MemTotal:       67108864 kB\nMemAvailable:   60000000 kB\n"),
		"proc/self/cgroup": file(""), "proc/self/mountinfo": file(""),
		node + "online":        file("0-1\n"),
		node + "node0/cpulist": file("0,2\n"), node + "node0/meminfo": file("Node 0 MemTotal: 33554432 kB\n"),
		node + "node1/cpulist": file("1,3\n"), node + "node1/meminfo": file("Node 1 MemTotal: 33554432 kB\n"),
	}
}

func newHost(t *testing.T) *Host {
	t.Helper()
	c := DefaultConfig()
	c.Spill.Path, c.Memory.Claims = t.TempDir(), t.TempDir()
	spill, err := handoff.New(c.Spill.handoff(nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { spill.Close() })
	return &Host{config: c, facts: inventory.NewHostAt(twoSockets()), Spill: spill, Instance: "i1"}
}

// Of two sockets, the processors next to a device are found by what its worker listed.
func TestProcessorsNextToADevice(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, d := range []Device{
		{Device: "gpu-a", NUMANode: 0}, {Device: "gpu-b", NUMANode: 0, Memory: 1}, {Device: "cpu", NUMANode: -1},
		{Device: "gpu-b", NUMANode: 1, Memory: 16 * bytesize.GiB}, // listed anew
	} {
		if err := h.ListDevice(d); err != nil {
			t.Fatal(err)
		}
	}
	for device, want := range map[string][]int{"gpu-a": {0, 2}, "gpu-b": {1, 3}, "cpu": nil, "gpu-c": nil} {
		if diff := cmp.Diff(want, h.CPUsOf(job.Device(device))); diff != "" {
			t.Errorf("%s: %s", device, diff)
		}
	}
	capacity, err := h.Capacity()
	if err != nil {
		t.Fatal(err)
	}
	if got := capacity[ledger.PoolVRAM("gpu-b")]; got != 16*bytesize.GiB {
		t.Errorf("memory of gpu-b is %s", got)
	}
	if _, ok := capacity[ledger.PoolVRAM("gpu-a")]; ok {
		t.Error("a device without memory has a pool")
	}
}

func TestListOfDevicesIgnoresWhatIsNoEntry(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if got, err := h.Devices(); got != nil || err != nil {
		t.Errorf("no list: %v, %v", got, err)
	}
	if err := h.ListDevice(Device{Device: "cpu"}); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(h.config.Spill.Path, devicesFolder)
	for name, text := range map[string]string{
		"x.json": "{", "other.json": `{"device":"cpu"}`, "UP.json": `{"device":"UP"}`, "big.json": strings.Repeat(" ", 5000),
		"text": "x", "neg.json": `{"device":"neg","memory":"-1B"}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(folder, "link.json")); err != nil {
		t.Fatal(err)
	}
	got, err := h.Devices()
	if diff := cmp.Diff([]Device{{Device: "cpu"}}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestB42CapacityIsBounded(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	free, err := h.Capacity()
	if err != nil {
		t.Fatal(err)
	}
	if ram := free[ledger.PoolRAM]; ram >= 64*bytesize.GiB || ram < 59*bytesize.GiB {
		t.Errorf("ram is %s of 64 GiB", ram)
	}
	h.config.Memory.RAMMax = bytesize.GiB
	bounded, err := h.Capacity()
	if err != nil {
		t.Fatal(err)
	}
	if bounded[ledger.PoolRAM] != bytesize.GiB || bounded[ledger.PoolPinned] != bytesize.GiB {
		t.Errorf("bounded: %s", bounded)
	}
}

func TestConfigRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"no node": func(c *Config) { c.Node = "" }, "node with a dot": func(c *Config) { c.Node = "a.b" },
		"relative path": func(c *Config) { c.Spill.Path = "spill" }, "negative": func(c *Config) { c.Memory.RAMMax = -1 },
		"no sweep": func(c *Config) { c.Spill.SweepEvery = 0 },
	} {
		c := DefaultConfig()
		c.Node = "n1"
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if err := c.Validate(); fault.KindOf(err) == "" {
			t.Errorf("%s passes", name)
		}
	}
}

var errRefused = fault.New(fault.Invalid, "credentials are refused")

// B106: what passes is waited for; a wrong credential ends the wait with one line.
func TestOpenWaitsForTheBus(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	c.Node, c.Role, c.Log = "n1", "synth", zerolog.Nop()
	c.Worker.RetryMin, c.Worker.RetryMax = time.Millisecond, time.Millisecond
	c.Spill.Path, c.Memory.Claims = filepath.Join(t.TempDir(), "spill"), t.TempDir()
	tries := 0
	c.Connect = func(context.Context) (bus.Bus, error) {
		if tries++; tries < 5 {
			return nil, fault.New(fault.Transient, "no server")
		}
		return nil, errRefused
	}
	_, err := Open(t.Context(), c, inventory.NewHost())
	if !errors.Is(err, errRefused) || tries != 5 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	c.Connect = func(context.Context) (bus.Bus, error) { return nil, fault.New(fault.Transient, "no server") }
	if _, err := Open(ctx, c, inventory.NewHost()); err == nil {
		t.Error("opened without a server")
	}
}

// sample is a program's configuration.
type sample struct {
	Config
	Logs   telemetry.LogConfig   `doc:"Logs."`
	Traces telemetry.TraceConfig `doc:"Traces."`
}

func (s *sample) Validate() error { return s.Config.Validate() }

func TestProgramReadsItsArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		code int
		out  string // part of what is printed
		errs string
	}{
		"runs":  {args: []string{"--set", "node=n1"}, code: ExitOK},
		"fails": {args: []string{"--set", "node=n1", "--break"}, code: ExitFailed, errs: "broken"},
		"no device": {
			args: []string{"--set", "node=n1", "--break", "--no-device"}, code: ExitNoDevice, errs: "no driver",
		},
		"no node":       {code: ExitUsage, errs: "node"},
		"unknown key":   {args: []string{"--set", "node=n1", "--set", "spil.path=/x"}, code: ExitUsage, errs: "spil.path"},
		"unknown flag":  {args: []string{"--nonsense"}, code: ExitUsage, errs: "nonsense"},
		"unknown word":  {args: []string{"nonsense"}, code: ExitUsage, errs: "nonsense"},
		"help":          {args: []string{"--help"}, code: ExitOK, errs: "usage"},
		"print":         {args: []string{"--set", "node=n1", "config", "print"}, code: ExitOK, out: "n1"},
		"example":       {args: []string{"config", "example"}, code: ExitOK, out: "sweep_every"},
		"absent config": {args: []string{"--config", "/nowhere.toml"}, code: ExitUsage, errs: "/nowhere.toml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sample{
				Config: DefaultConfig(), Logs: telemetry.DefaultLogConfig(), Traces: telemetry.DefaultTraceConfig(),
			}
			broken, noDevice := false, false
			p := Program{
				Name: "sample", Title: "Sample", Config: &s, Logs: func() telemetry.LogConfig { return s.Logs },
				Traces: func() telemetry.TraceConfig { return s.Traces },
				Set: func(log zerolog.Logger, tracer *telemetry.Tracer, build string) {
					s.Log, s.Tracer, s.Build = log, tracer, build
				},
				Flags: func(flags *flag.FlagSet, _ func(string)) {
					flags.BoolVar(&broken, "break", false, "break")
					flags.BoolVar(&noDevice, "no-device", false, "break for want of a device")
				},
				Run: func(ctx context.Context) error {
					if service.ControlOf(ctx) == nil || s.Build == "" {
						t.Error("no control or no build")
					}
					if noDevice {
						return fault.New(fault.Device, "no driver")
					}
					if broken {
						return errors.New("broken")
					}
					return nil
				},
			}
			var out, errs strings.Builder
			if code := p.Main(c.args, nil, &out, &errs); code != c.code {
				t.Errorf("exit code %d, want %d; %s", code, c.code, errs.String())
			}
			if !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
				t.Errorf("printed %q and %q", out.String(), errs.String())
			}
		})
	}
}

func TestEveryKeyIsDocumented(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	if got := config.Undocumented(&c); len(got) != 0 {
		t.Errorf("keys without a meaning: %v", got)
	}
}
