package workergpu

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/inventory/gpu"
	"github.com/proofrack/proofrack/shared/service"
)

// cards is a driver with cards.
type cards []gpu.Reading

func (c cards) Open() (string, error)        { return "1.0", nil }
func (c cards) Read() ([]gpu.Reading, error) { return c, nil }
func (c cards) Close()                       {}

func card(index int, uuid string, memory bytesize.Bytes) gpu.Reading {
	return gpu.Reading{Device: gpu.Device{
		Index: index, UUID: uuid, Name: "card", NUMANode: index % 2,
		Memory: gpu.Memory{Known: memory > 0, Total: memory, Free: memory},
	}}
}

// finder is a worker that has looked at the cards once.
func finder(t *testing.T, library gpu.Library, change func(*Config)) *worker {
	t.Helper()
	w := &worker{config: DefaultConfig(), facts: inventory.NewHost()}
	w.config.Log = zerolog.Nop()
	change(&w.config)
	w.monitor = gpu.NewMonitor(library, gpu.Config{Interval: time.Hour}, zerolog.Nop())
	control, ended := service.NewControl(), make(chan struct{})
	go func() {
		defer close(ended)
		if err := w.monitor.Service().Run(context.Background(), control); err != nil {
			t.Error(err)
		}
	}()
	for w.monitor.Inventory().At.IsZero() && w.monitor.Inventory().Missing == "not looked yet" {
		time.Sleep(time.Millisecond)
	}
	t.Cleanup(func() { control.Stop(service.Kill, "test ends"); <-ended })
	return w
}

func names(t *testing.T, w *worker) []string {
	t.Helper()
	found, err := w.find()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, d := range found {
		all = append(all, string(d.Device)+" "+d.UUID+" "+d.Memory.String())
	}
	return all
}

// B21: devices are named and asked for by what lasts, whatever the order. B101: one whose memory is unknown takes jobs
// only with a budget.
func TestB21DevicesAreFoundByWhatLasts(t *testing.T) {
	t.Parallel()
	mixed := cards{
		card(1, "GPU-bbbbbbbb-1", 16*bytesize.GiB), card(0, "GPU-aaaaaaaa-2", 80*bytesize.GiB), card(2, "MIG-cccccccc-3", 0),
	}
	for name, c := range map[string]struct {
		devices []string
		budget  map[string]bytesize.Bytes
		want    []string
	}{
		"all": {want: []string{"gpu-aaaaaaaa GPU-aaaaaaaa-2 80 GiB", "gpu-bbbbbbbb GPU-bbbbbbbb-1 16 GiB"}},
		"B101 with a budget": {
			budget: map[string]bytesize.Bytes{"mig-cccccccc": 8 * bytesize.GiB, "gpu-aaaaaaaa": 20 * bytesize.GiB},
			want: []string{
				"gpu-aaaaaaaa GPU-aaaaaaaa-2 20 GiB", "gpu-bbbbbbbb GPU-bbbbbbbb-1 16 GiB", "mig-cccccccc MIG-cccccccc-3 8 GiB",
			},
		},
		"by name": {devices: []string{"gpu-bbbbbbbb"}, want: []string{"gpu-bbbbbbbb GPU-bbbbbbbb-1 16 GiB"}},
		"by uuid and cpu": {
			devices: []string{"GPU-aaaaaaaa-2", "cpu"}, want: []string{"gpu-aaaaaaaa GPU-aaaaaaaa-2 80 GiB", "cpu  0 B"},
		},
	} {
		w := finder(t, mixed, func(config *Config) { config.Prove.Devices, config.Prove.Budget = c.devices, c.budget })
		if diff := cmp.Diff(c.want, names(t, w)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	w := finder(t, mixed, func(config *Config) { config.Prove.Devices = []string{"gpu-dddddddd"} })
	if _, err := w.find(); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "gpu-bbbbbbbb") {
		t.Errorf("unknown device: %v", err)
	}
}

// B99: a host without a driver has no GPUs, which is said, and the processor proves when it is asked to.
func TestB99NoDriverIsNoError(t *testing.T) {
	t.Parallel()
	w := finder(t, gpu.NVML("/nowhere/libnvidia-ml.so.1", inventory.NewHost()), func(*Config) {})
	if got := names(t, w); len(got) != 0 || !strings.Contains(w.none, "no GPU") || !strings.Contains(w.none, "NVML") {
		t.Errorf("devices %v: %s", got, w.none)
	}
	w.config.Prove.Devices = []string{"cpu"}
	if diff := cmp.Diff([]string{"cpu  0 B"}, names(t, w)); diff != "" {
		t.Error(diff)
	}
}

// With the choice cuda a worker without a GPU that can be driven ends, and says why; with auto the processor proves.
func TestChoicesOfDevices(t *testing.T) {
	t.Parallel()
	w := finder(t, cards{}, func(config *Config) {
		config.Prove.Devices, config.Prove.Library = []string{"cuda"}, "/nowhere/libproofrack_cuda.so"
	})
	if _, err := w.find(); fault.KindOf(err) != fault.Device || !strings.Contains(err.Error(), "/nowhere/") {
		t.Errorf("no library: %v", err)
	}
	w.config.Prove.Devices = []string{"auto"}
	if diff := cmp.Diff([]string{"cpu  0 B"}, names(t, w)); diff != "" {
		t.Errorf("auto: %s", diff)
	}
	w.config.Prove.Devices = []string{"cpu", "cuda"}
	if _, err := w.find(); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "stands alone") {
		t.Errorf("cuda beside another one: %v", err)
	}

	// The host-compiled library is one device.
	w.config.Prove.Library = "../cuda/build/libproofrack_cuda_host.so"
	for _, choice := range []string{"cuda", "auto"} {
		w.config.Prove.Devices = []string{choice}
		if diff := cmp.Diff([]string{"host host 0 B"}, names(t, w)); diff != "" {
			t.Errorf("%s (make cuda-host makes the library): %s", choice, diff)
		}
	}
}
