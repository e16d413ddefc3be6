//go:build cgo

package gpu

import (
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/inventory"
)

// DefaultLibrary is where the driver's library is looked for: the loader's path.
const DefaultLibrary = "libnvidia-ml.so.1"

// NVML is the driver's library of this host. The path is DefaultLibrary as a rule; the host tells NUMA nodes.
func NVML(path string, host *inventory.Host) Library {
	var file *dl.DynamicLibrary
	return &nvmlLibrary{
		api:  nvml.New(nvml.WithLibraryPath(path)),
		host: host,
		load: func() error {
			file = dl.New(path, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
			if err := file.Open(); err != nil {
				file = nil
				return err
			}
			return nil
		},
		has: func(function string) bool {
			// The binding takes the newest of these that the library has.
			for _, version := range []string{"", "_v2", "_v3"} {
				if file.Lookup(function+version) == nil {
					return true
				}
			}
			return false
		},
	}
}

// nvmlLibrary is a Library on the binding, or on its mock.
type nvmlLibrary struct {
	api  nvml.Interface
	host *inventory.Host
	load func() error               // loads the library, without calling it
	has  func(function string) bool // the loaded library has some version of a function
}

// Open implements Library.
func (l *nvmlLibrary) Open() (string, error) {
	if err := l.load(); err != nil {
		if strings.Contains(err.Error(), "No such file") || strings.Contains(err.Error(), "cannot open shared object") {
			return "", fault.New(fault.NotFound, "NVML library not found")
		}
		return "", fault.New(fault.NotFound, "NVML library cannot be loaded: %w", err)
	}
	for _, function := range []string{
		"nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID",
	} {
		if !l.has(function) {
			return "", fault.New(fault.NotFound, "NVML library has no %s", function)
		}
	}
	if ret := l.api.Init(); ret != nvml.SUCCESS {
		return "", fault.New(fault.NotFound, "NVML does not start: %s", describe(ret))
	}
	version := "unknown"
	if l.has("nvmlSystemGetDriverVersion") {
		if v, ret := l.api.SystemGetDriverVersion(); ret == nvml.SUCCESS {
			version = v
		}
	}
	return version, nil
}

// Close implements Library.
func (l *nvmlLibrary) Close() {
	if l.has("nvmlShutdown") {
		l.api.Shutdown()
	}
}

// Read implements Library.
func (l *nvmlLibrary) Read() ([]Reading, error) {
	count, ret := l.api.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, failure("count GPUs", ret)
	}
	var all []Reading
	for i := range count {
		handle, ret := l.api.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			all = append(all, failed(blank(i), "find GPU", ret))
			continue
		}
		all = append(all, l.gpu(i, handle)...)
	}
	return all, nil
}

func blank(index int) Device {
	return Device{Index: index, NUMANode: Unknown, Utilization: Unknown, PowerMW: Unknown, EnergyMJ: Unknown}
}

// gpu reads a GPU, or the slices it is cut into.
func (l *nvmlLibrary) gpu(index int, handle nvml.Device) []Reading {
	d := blank(index)
	if l.has("nvmlDeviceGetPciInfo") {
		if pci, ret := handle.GetPciInfo(); ret == nvml.SUCCESS {
			d.PCI, d.NUMANode = l.place(pci)
		}
	}
	sliced := false
	if l.has("nvmlDeviceGetMigMode") {
		current, _, ret := handle.GetMigMode()
		sliced = ret == nvml.SUCCESS && current == nvml.DEVICE_MIG_ENABLE
	}
	if !sliced || !l.has("nvmlDeviceGetMaxMigDeviceCount") || !l.has("nvmlDeviceGetMigDeviceHandleByIndex") {
		return []Reading{l.read(d, handle)}
	}
	most, ret := handle.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return []Reading{failed(d, "count MIG slices", ret)}
	}
	d.MIG = true
	var all []Reading
	for i := range most {
		slice, ret := handle.GetMigDeviceHandleByIndex(i)
		switch ret {
		case nvml.SUCCESS:
			all = append(all, l.read(d, slice))
		case nvml.ERROR_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT: // this place is empty
		default:
			all = append(all, failed(d, "find MIG slice", ret))
		}
	}
	return all
}

// place is a PCI address and the NUMA node it is at.
func (l *nvmlLibrary) place(pci nvml.PciInfo) (string, int) {
	var b strings.Builder
	for _, c := range pci.BusId {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	address := strings.ToLower(b.String())
	if domain, rest, ok := strings.Cut(address, ":"); ok && len(domain) == 8 {
		address = domain[4:] + ":" + rest
	}
	node, err := l.host.PCINode(address)
	if err != nil {
		return address, Unknown
	}
	return address, node
}

// read asks one device. Errors that mean "not for you" or "not here" leave a fact unknown; others are the device's.
func (l *nvmlLibrary) read(d Device, handle nvml.Device) Reading {
	uuid, ret := handle.GetUUID()
	if ret != nvml.SUCCESS {
		return failed(d, "ask for its UUID", ret)
	}
	d.UUID = uuid
	if l.has("nvmlDeviceGetName") {
		name, ret := handle.GetName()
		if ret != nvml.SUCCESS && !withheld(ret) {
			return failed(d, "ask for its name", ret)
		}
		d.Name = name
	}
	if l.has("nvmlDeviceGetMemoryInfo") {
		memory, ret := handle.GetMemoryInfo()
		if ret != nvml.SUCCESS && !withheld(ret) {
			return failed(d, "ask for its memory", ret)
		}
		total, errTotal := bytesize.Of(int64(memory.Total)) //nolint:gosec // what does not fit is refused
		free, errFree := bytesize.Of(int64(memory.Free))    //nolint:gosec // as above
		if ret == nvml.SUCCESS && total > 0 && errTotal == nil && errFree == nil {
			d.Memory = Memory{Known: true, Total: total, Free: free}
		}
	}
	if l.has("nvmlDeviceGetUtilizationRates") {
		load, ret := handle.GetUtilizationRates()
		if ret != nvml.SUCCESS && !withheld(ret) {
			return failed(d, "ask for its utilization", ret)
		}
		if ret == nvml.SUCCESS {
			d.Utilization = int(load.Gpu)
		}
	}
	l.power(&d, handle)
	return Reading{Device: d}
}

// power reads power and energy. Many devices do not tell them, and trouble with them says nothing about proofs.
func (l *nvmlLibrary) power(d *Device, handle nvml.Device) {
	if l.has("nvmlDeviceGetPowerUsage") {
		if power, ret := handle.GetPowerUsage(); ret == nvml.SUCCESS {
			d.PowerMW = int64(power)
		}
	}
	if l.has("nvmlDeviceGetTotalEnergyConsumption") {
		if energy, ret := handle.GetTotalEnergyConsumption(); ret == nvml.SUCCESS && energy < 1<<62 {
			d.EnergyMJ = int64(energy)
		}
	}
}

// withheld tells answers that say nothing about the device's health.
func withheld(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NO_PERMISSION, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT,
		nvml.ERROR_NO_DATA, nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_DEPRECATED:
		return true
	}
	return false
}

func failed(d Device, doing string, ret nvml.Return) Reading {
	return Reading{
		Device: d, Err: failure(doing, ret), Lost: ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED,
	}
}

func failure(doing string, ret nvml.Return) error {
	return fault.New(fault.Device, "%s: %s", doing, describe(ret))
}

// describe is a code in words. The binding would ask the library, which may lack the function.
func describe(ret nvml.Return) string {
	words := "error"
	switch ret {
	case nvml.ERROR_UNINITIALIZED:
		words = "not started"
	case nvml.ERROR_NOT_SUPPORTED:
		words = "not supported"
	case nvml.ERROR_NO_PERMISSION:
		words = "no permission"
	case nvml.ERROR_NOT_FOUND:
		words = "not found"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		words = "driver not loaded"
	case nvml.ERROR_TIMEOUT:
		words = "timeout"
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		words = "library not found"
	case nvml.ERROR_GPU_IS_LOST:
		words = "GPU is lost"
	case nvml.ERROR_RESET_REQUIRED:
		words = "GPU needs a reset"
	case nvml.ERROR_OPERATING_SYSTEM:
		words = "blocked by the operating system"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		words = "library and driver are of different versions"
	case nvml.ERROR_UNKNOWN:
		words = "unknown error"
	}
	return fmt.Sprintf("%s (NVML %d)", words, int(ret))
}
