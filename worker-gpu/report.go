package workergpu

import (
	"errors"
	"fmt"

	"github.com/proofrack/proofrack/cuda"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/inventory/gpu"
	"github.com/proofrack/proofrack/worker-gpu/internal/cudadevice"
)

// DeviceReport is what a machine has to prove on beside its processor.
type DeviceReport struct {
	// Driver is the installed NVIDIA driver's version, "" for none; DriverRuntime is the newest CUDA that it serves.
	Driver        string `json:"driver,omitempty"`
	DriverRuntime string `json:"driver_cuda,omitempty"`
	// Library tells that the device library was found; Runtime is the CUDA in it, Needs the driver that takes, and
	// Architectures are the compute capabilities that it has code for.
	Library       bool   `json:"library"`
	Runtime       string `json:"library_cuda,omitempty"`
	Needs         string `json:"library_needs,omitempty"`
	Architectures string `json:"library_architectures,omitempty"`

	Devices []DeviceFacts `json:"devices"`
	// Missing says why there are no devices, Hint what would help.
	Missing string `json:"missing,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// DeviceFacts is one device.
type DeviceFacts struct {
	UUID       string         `json:"uuid"`
	Name       string         `json:"name"`
	PCI        string         `json:"pci,omitempty"`
	Memory     bytesize.Bytes `json:"memory_bytes"`
	Capability string         `json:"compute_capability,omitempty"`
}

// Devices looks for the device library, at a path or where workers look for it, and lists what it can drive.
func Devices(library string) *DeviceReport {
	r := &DeviceReport{Devices: []DeviceFacts{}}
	nvml := gpu.NVML(gpu.DefaultLibrary, inventory.NewHost())
	if driver, err := nvml.Open(); err == nil {
		r.Driver = driver
		nvml.Close()
	}
	found, devices, err := cudadevice.Devices(library)
	if found != nil {
		v := found.Version()
		r.Library, r.Runtime, r.Needs, r.Architectures = true, cuda.Release(v.Runtime), v.Needs(), v.Architectures
		if v.Driver > 0 {
			r.DriverRuntime = cuda.Release(v.Driver)
		}
	}
	if err != nil {
		report := fault.ReportOf("", err)
		r.Missing, r.Hint = report.Message, report.Hint
		if errors.Is(err, cuda.ErrNoDevice) && r.Driver == "" {
			r.Hint = "there is no NVIDIA driver either; " + r.Hint
		}
		return r
	}
	for i := range devices {
		d := &devices[i]
		facts := DeviceFacts{UUID: d.UUID, Name: d.Name, PCI: d.PCI, Memory: bytesize.Bytes(d.MemoryBytes)}
		if d.Major > 0 {
			facts.Capability = fmt.Sprintf("%d.%d", d.Major, d.Minor)
		}
		r.Devices = append(r.Devices, facts)
	}
	return r
}
