//go:build cgo

package gpu

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/inventory"
)

// board is a made-up machine of eight H100, four on each socket.
func board(t *testing.T) (*nvmlLibrary, *server.Server) {
	t.Helper()
	root := fstest.MapFS{}
	s := dgxh100.New()
	for i, d := range s.Devices {
		d := d.(*server.Device)
		d.UUID = "GPU-" + string(rune('a'+i))
		address := "00000000:0" + string(rune('0'+i)) + ":00.0"
		d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
			var pci nvml.PciInfo
			for j, c := range []byte(address) {
				pci.BusId[j] = int8(c)
			}
			return pci, nvml.SUCCESS
		}
		d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
			return nvml.Utilization{Gpu: uint32(i)}, nvml.SUCCESS
		}
		d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 350_500, nvml.SUCCESS }
		d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 7_200_000, nvml.SUCCESS }
		node := map[bool]string{true: "0\n", false: "1\n"}[i < 4]
		root["sys/bus/pci/devices/"+address[4:]+"/numa_node"] = &fstest.MapFile{Data: []byte(node)}
	}
	return &nvmlLibrary{
		api: s, host: inventory.NewHostAt(root), load: func() error { return nil }, has: func(string) bool { return true },
	}, s
}

func device(s *server.Server, i int) *server.Device { return s.Devices[i].(*server.Device) }

func TestEightH100(t *testing.T) {
	t.Parallel()
	l, _ := board(t)
	driver, err := l.Open()
	if err != nil || driver != "550.54.15" {
		t.Fatalf("%q, %v", driver, err)
	}
	got, err := l.Read()
	if err != nil || len(got) != 8 {
		t.Fatalf("%+v, %v", got, err)
	}
	want := Reading{Device: Device{
		Index: 5, UUID: "GPU-f", Name: "NVIDIA H100 80GB HBM3", PCI: "0000:05:00.0", NUMANode: 1, Utilization: 5,
		PowerMW: 350_500, EnergyMJ: 7_200_000,
		Memory: Memory{Known: true, Total: got[5].Device.Memory.Total},
	}}
	if diff := cmp.Diff(want, got[5]); diff != "" {
		t.Error(diff)
	}
	total := got[5].Device.Memory.Total
	if total < 79*bytesize.GiB || total > 96*bytesize.GiB || got[0].Device.NUMANode != 0 {
		t.Errorf("%+v", got[0])
	}
	l.Close()
}

func TestB101WithheldFactsAreUnknownAndTheRestIsShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		memory nvml.Memory
		ret    nvml.Return
	}{
		"no permission":           {nvml.Memory{}, nvml.ERROR_NO_PERMISSION},
		"not supported":           {nvml.Memory{Total: 7}, nvml.ERROR_NOT_SUPPORTED},
		"an answer of nothing":    {nvml.Memory{}, nvml.SUCCESS},
		"an answer beyond sizes":  {nvml.Memory{Total: 1<<64 - 1}, nvml.SUCCESS},
		"not in this library yet": {nvml.Memory{}, nvml.ERROR_FUNCTION_NOT_FOUND},
	} {
		l, s := board(t)
		d := device(s, 2)
		d.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return c.memory, c.ret }
		d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
			return nvml.Utilization{}, nvml.ERROR_NOT_SUPPORTED
		}
		d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_NO_PERMISSION }
		d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 1 << 63, nvml.SUCCESS }
		got, err := l.Read()
		if err != nil || len(got) != 8 || got[2].Err != nil {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		want := Device{Index: 2, UUID: "GPU-c", Name: "NVIDIA H100 80GB HBM3", PCI: "0000:02:00.0", NUMANode: 0,
			Utilization: Unknown, PowerMW: Unknown, EnergyMJ: Unknown}
		if diff := cmp.Diff(want, got[2].Device); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if _, ok := got[2].Device.Capacity(0); ok {
			t.Errorf("%s: it would take jobs without a budget", name)
		}
		if !got[3].Device.Memory.Known {
			t.Errorf("%s: the others' memory is unknown too", name)
		}
	}
}

func TestB101MIGSlicesStandForTheirGPU(t *testing.T) {
	t.Parallel()
	l, s := board(t)
	d := device(s, 1)
	d.MigMode = nvml.DEVICE_MIG_ENABLE
	d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	d.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i > 1 {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return &mock.Device{
			GetUUIDFunc:       func() (string, nvml.Return) { return "MIG-" + string(rune('x'+i)), nvml.SUCCESS },
			GetNameFunc:       func() (string, nvml.Return) { return "NVIDIA H100 MIG 3g.40gb", nvml.SUCCESS },
			GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_NO_PERMISSION },
			GetUtilizationRatesFunc: func() (nvml.Utilization, nvml.Return) {
				return nvml.Utilization{}, nvml.ERROR_NOT_SUPPORTED
			},
			GetPowerUsageFunc:             func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },
			GetTotalEnergyConsumptionFunc: func() (uint64, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },
		}, nvml.SUCCESS
	}
	got, err := l.Read()
	if err != nil || len(got) != 9 {
		t.Fatalf("%d readings, %v", len(got), err)
	}
	want := Device{Index: 1, UUID: "MIG-y", Name: "NVIDIA H100 MIG 3g.40gb", PCI: "0000:01:00.0", NUMANode: 0, MIG: true,
		Utilization: Unknown, PowerMW: Unknown, EnergyMJ: Unknown}
	if diff := cmp.Diff(want, got[2].Device); diff != "" || got[2].Err != nil {
		t.Errorf("%v %s", got[2].Err, diff)
	}
}

func TestB102ErrorsOfADeviceAreItsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		breaks func(s *server.Server, d *server.Device)
		err    string
		lost   bool
	}{
		"memory": {func(_ *server.Server, d *server.Device) {
			d.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_UNKNOWN }
		}, "ask for its memory: unknown error (NVML 999)", false},
		"lost": {func(_ *server.Server, d *server.Device) {
			d.GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_GPU_IS_LOST }
		}, "ask for its UUID: GPU is lost (NVML 15)", true},
		"handle": {func(s *server.Server, d *server.Device) {
			s.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
				if s.Devices[i] == nvml.Device(d) {
					return nil, nvml.ERROR_UNKNOWN
				}
				return s.Devices[i], nvml.SUCCESS
			}
		}, "find GPU: unknown error (NVML 999)", false},
	} {
		l, s := board(t)
		c.breaks(s, device(s, 4))
		got, err := l.Read()
		if err != nil || len(got) != 8 {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		for i, r := range got {
			if (r.Err != nil) != (i == 4) || r.Device.Index != i {
				t.Errorf("%s: device %d: %+v", name, i, r)
			}
		}
		if r := got[4]; r.Err.Error() != c.err || r.Lost != c.lost || fault.KindOf(r.Err) != fault.Device {
			t.Errorf("%s: %+v", name, r)
		}
	}
	l, s := board(t)
	s.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
	if _, err := l.Read(); err == nil || !strings.Contains(err.Error(), "count GPUs: unknown error") {
		t.Errorf("%v", err)
	}
}

func TestB99AFailedStartIsNotFollowedByACall(t *testing.T) {
	t.Parallel()
	l, s := board(t)
	s.InitFunc = func() nvml.Return { return nvml.ERROR_DRIVER_NOT_LOADED }
	s.SystemGetDriverVersionFunc = nil // the mock panics when it is called
	if _, err := l.Open(); err == nil || err.Error() != "NVML does not start: driver not loaded (NVML 9)" {
		t.Errorf("%v", err)
	}
	l, s = board(t)
	s.InitFunc = nil
	l.has = func(name string) bool { return name != "nvmlDeviceGetCount" }
	if _, err := l.Open(); err == nil || err.Error() != "NVML library has no nvmlDeviceGetCount" {
		t.Errorf("%v", err)
	}
}
