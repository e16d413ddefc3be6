package gpu_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/inventory/gpu"
	"github.com/proofrack/proofrack/shared/service"
)

// library is a made-up driver.
type library struct {
	open   error
	read   func(call int) ([]gpu.Reading, error)
	calls  atomic.Int32
	closed atomic.Bool
}

func (l *library) Open() (string, error) { return "550.54", l.open }
func (l *library) Close()                { l.closed.Store(true) }
func (l *library) Read() ([]gpu.Reading, error) {
	return l.read(int(l.calls.Add(1)))
}

func h100(index int) gpu.Device {
	return gpu.Device{
		Index: index, UUID: "GPU-" + string(rune('a'+index)), Name: "H100", PCI: "0000:17:00.0", NUMANode: 1,
		Memory: gpu.Memory{Known: true, Total: 80 * bytesize.GiB, Free: 79 * bytesize.GiB}, Utilization: 3,
	}
}

func works(devices ...gpu.Device) []gpu.Reading {
	var all []gpu.Reading
	for _, d := range devices {
		all = append(all, gpu.Reading{Device: d})
	}
	return all
}

// watch runs a monitor until the test ends and gives it and its log.
func watch(t *testing.T, l gpu.Library) (*gpu.Monitor, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	m := gpu.NewMonitor(l, gpu.DefaultConfig(), zerolog.New(zerolog.SyncWriter(&log)))
	c := service.NewControl()
	ended := make(chan error)
	go func() {
		ended <- service.NewGroup(service.DefaultConfig(), zerolog.Nop(), nil).
			Run(service.With(t.Context(), c), m.Service())
	}()
	t.Cleanup(func() {
		c.Stop(service.Drain, "test ends")
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return m, &log
}

// interval passes the time of one poll.
func interval() {
	time.Sleep(gpu.DefaultConfig().Interval)
	synctest.Wait()
}

func health(m *gpu.Monitor) string {
	var all []string
	for _, d := range m.Inventory().Devices {
		all = append(all, map[bool]string{true: "healthy", false: "unhealthy"}[d.Healthy])
	}
	return strings.Join(all, " ")
}

func TestB99NoDriverIsOneInfoLineAndNoGPUs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &library{open: fault.New(fault.NotFound, "NVML library not found"), read: func(int) ([]gpu.Reading, error) {
			panic("a library that did not open is called")
		}}
		m, log := watch(t, l)
		for range 100 {
			interval()
		}
		want := `{"level":"info","message":"GPU metrics unavailable: NVML library not found"}` + "\n"
		if diff := cmp.Diff(want, log.String()); diff != "" {
			t.Error(diff)
		}
		if inv := m.Inventory(); len(inv.Devices) != 0 || inv.Missing != "NVML library not found" || inv.Driver != "" {
			t.Errorf("%+v", inv)
		}
		t.Cleanup(func() {
			if l.closed.Load() {
				t.Error("a library that did not open is closed")
			}
		})
	})
}

func TestB102LostDeviceIsUnhealthyWithinTwoPolls(t *testing.T) {
	t.Parallel()
	unknown := fault.New(fault.Device, "ask for its memory: unknown error (NVML 999)")
	for name, c := range map[string]struct {
		bad  func() ([]gpu.Reading, error)
		want []string // after each bad poll
	}{
		"every call fails": {
			func() ([]gpu.Reading, error) { return nil, unknown },
			[]string{"healthy healthy", "unhealthy unhealthy", "unhealthy unhealthy"},
		},
		"one device fails": {
			func() ([]gpu.Reading, error) {
				return append(works(h100(0)), gpu.Reading{Device: h100(1), Err: unknown}), nil
			}, []string{"healthy healthy", "healthy unhealthy", "healthy unhealthy"},
		},
		"it does not even tell its name": {
			func() ([]gpu.Reading, error) {
				return append(works(h100(0)), gpu.Reading{Device: gpu.Device{Index: 1}, Err: unknown}), nil
			}, []string{"healthy healthy", "healthy unhealthy", "healthy unhealthy"},
		},
		"it is not listed": {
			func() ([]gpu.Reading, error) { return works(h100(0)), nil },
			[]string{"healthy healthy", "healthy unhealthy", "healthy unhealthy"},
		},
		"the driver says it is lost": {
			func() ([]gpu.Reading, error) {
				return append(works(h100(0)), gpu.Reading{Device: h100(1), Err: unknown, Lost: true}), nil
			}, []string{"healthy unhealthy", "healthy unhealthy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var broken atomic.Bool
				l := &library{read: func(int) ([]gpu.Reading, error) {
					if broken.Load() {
						return c.bad()
					}
					return works(h100(0), h100(1)), nil
				}}
				m, log := watch(t, l)
				broken.Store(true)
				for i, want := range c.want {
					interval()
					if got := health(m); got != want {
						t.Errorf("after %d bad polls: %s, want %s", i+1, got, want)
					}
				}
				lost := m.Inventory().Devices[1]
				if lost.UUID != "GPU-b" || lost.Reason == "" || !lost.Memory.Known {
					t.Errorf("what was known of it is gone: %+v", lost)
				}
				// The alert names it, once; nothing is called more often than it is polled.
				if n := strings.Count(log.String(), `"level":"error","c2.gpu.id":"GPU-b"`); n != 1 {
					t.Errorf("%d alerts:\n%s", n, log.String())
				}
				if n := int(l.calls.Load()); n != 1+len(c.want) {
					t.Errorf("%d calls in %d polls", n, 1+len(c.want))
				}
				broken.Store(false)
				interval()
				if got := health(m); !strings.Contains(got, "unhealthy") {
					t.Errorf("one good poll is enough: %s", got)
				}
				interval()
				if got := health(m); got != "healthy healthy" || m.Inventory().Devices[1].Reason != "" {
					t.Errorf("after two good polls: %+v", m.Inventory())
				}
			})
		})
	}
}

func TestB102OneBadPollIsForgiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, log := watch(t, &library{read: func(call int) ([]gpu.Reading, error) {
			if call%2 == 0 {
				return nil, errors.New("hiccup")
			}
			return works(h100(0)), nil
		}})
		for range 10 {
			interval()
			if got := health(m); got != "healthy" {
				t.Fatal(got)
			}
		}
		if strings.Contains(log.String(), "error\"") {
			t.Error(log.String())
		}
	})
}

func TestB102DriverThatHangsCostsOneCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		l := &library{read: func(call int) ([]gpu.Reading, error) {
			if call == 2 {
				<-release
			}
			return works(h100(0)), nil
		}}
		m, _ := watch(t, l)
		for range 3 { // one to begin the call, two that find it unanswered
			interval()
		}
		reason := m.Inventory().Devices[0].Reason
		if health(m) != "unhealthy" || !strings.Contains(reason, "not answered for 10s") {
			t.Errorf("%+v", m.Inventory())
		}
		for range 50 {
			interval()
		}
		if n := l.calls.Load(); n != 2 {
			t.Errorf("%d calls", n)
		}
		close(release)
		synctest.Wait()
		interval()
		if health(m) != "healthy" {
			t.Errorf("%+v", m.Inventory())
		}
	})
}

func TestADriverThatHangsAtStartKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		t.Cleanup(func() { close(release) })
		m := gpu.NewMonitor(&library{read: func(int) ([]gpu.Reading, error) {
			<-release
			return nil, nil
		}}, gpu.DefaultConfig(), zerolog.Nop())
		c := service.NewControl()
		health := service.NewHealth()
		ended := make(chan error)
		go func() {
			ended <- service.NewGroup(service.DefaultConfig(), zerolog.Nop(), health).
				Run(service.With(t.Context(), c), m.Service())
		}()
		interval()
		if s := health.Readiness(t.Context()); !s.OK {
			t.Errorf("%+v", s)
		}
		if inv := m.Inventory(); !strings.Contains(inv.Missing, "has not answered") {
			t.Errorf("%+v", inv)
		}
		c.Stop(service.Drain, "test")
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestB101UnknownMemoryIsNeitherNothingNorEndless(t *testing.T) {
	t.Parallel()
	known := gpu.Device{Memory: gpu.Memory{Known: true, Total: 80}}
	for name, c := range map[string]struct {
		device     gpu.Device
		configured bytesize.Bytes
		want       bytesize.Bytes
		ok         bool
	}{
		"known":                    {known, 0, 80, true},
		"known, configured less":   {known, 20, 20, true},
		"known, configured more":   {known, 100, 80, true},
		"unknown":                  {gpu.Device{}, 0, 0, false},
		"unknown, but configured":  {gpu.Device{}, 20, 20, true},
		"unknown, configured < 0":  {gpu.Device{}, -1, -1, false},
		"unknown with stray total": {gpu.Device{Memory: gpu.Memory{Total: 5}}, 0, 0, false},
	} {
		if got, ok := c.device.Capacity(c.configured); got != c.want || ok != c.ok {
			t.Errorf("%s: %d, %t", name, got, ok)
		}
	}
	if s := (gpu.Memory{}).String(); s != "unknown" {
		t.Error(s)
	}
	config := gpu.Config{}
	if err := config.Validate(); fault.KindOf(err) != fault.Invalid {
		t.Error(err)
	}
}

// playVariable makes the test binary look for GPUs through a library of its own making; see the tests of nvml_cgo.go.
const playVariable = "GPU_TEST_PLAY"

func TestMain(m *testing.M) {
	if path := os.Getenv(playVariable); path != "" {
		play(path)
		os.Exit(0)
	}
	os.Exit(m.Run())
}
