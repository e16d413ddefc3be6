//go:build cgo

package cuda

// #include "api.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/proofrack/proofrack/cuda/internal/dl"
)

// functions are the names of the struct's members, in its order.
func functions() []string {
	return []string{
		"prcuda_free", "prcuda_get_version", "prcuda_devices", "prcuda_open", "prcuda_close", "prcuda_get_memory",
		"prcuda_plan_circuit", "prcuda_params_open", "prcuda_params_close", "prcuda_params_plan", "prcuda_pending_open",
		"prcuda_start", "prcuda_finish", "prcuda_get_timings", "prcuda_abort", "prcuda_pending_close",
	}
}

// Library is a loaded device library. It stays loaded until the process ends. Its methods may be called from several
// goroutines.
type Library struct {
	api     *C.api
	path    string
	version Version
}

// Load loads the library at a path, or of a name that the system's loader looks for. Errors wrap ErrNoDevice.
func Load(path string) (*Library, error) {
	file, err := dl.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoDevice, err)
	}
	l := &Library{api: new(C.api), path: path}
	for i, name := range functions() {
		f, err := file.Symbol(name)
		if err != nil {
			return nil, fmt.Errorf("%w: %s is not proofrack's device library: %w", ErrNoDevice, path, err)
		}
		C.api_set(l.api, C.int(i), f)
	}
	var v C.prcuda_version
	if err := l.check("ask for the version", C.api_get_version(l.api, &v)); err != nil {
		return nil, errors.Join(ErrNoDevice, err)
	}
	if v.abi != abi {
		return nil, fmt.Errorf("%w: library %s has interface %d, this program needs %d", ErrNoDevice, path, v.abi, abi)
	}
	l.version = Version{
		Host: v.host != 0, Runtime: int(v.runtime), Driver: int(v.driver), Architectures: C.GoString(&v.architectures[0]),
	}
	return l, nil
}

// check makes an error of a status and frees its message.
func (l *Library) check(doing string, s C.prcuda_status) error {
	if s.code == C.PRCUDA_OK {
		return nil
	}
	e := &Error{Code: Code(s.code)}
	if s.message != nil {
		e.Message = C.GoString(s.message)
		C.api_release(l.api, unsafe.Pointer(s.message))
	}
	return fmt.Errorf("%s: %w", doing, e)
}

// Version is what the library says of itself.
func (l *Library) Version() Version { return l.version }

// devicesMax bounds how many devices are listed.
const devicesMax = 64

// Devices lists the devices. Without any, the error wraps ErrNoDevice and says what is missing.
func (l *Library) Devices() ([]DeviceInfo, error) {
	var list [devicesMax]C.prcuda_device_info
	var count C.int32_t
	if err := l.check("list devices", C.api_devices(l.api, &list[0], devicesMax, &count)); err != nil {
		return nil, err
	}
	all := make([]DeviceInfo, 0, count)
	for i := range list[:min(int(count), devicesMax)] {
		d := &list[i]
		all = append(all, DeviceInfo{
			UUID: C.GoString(&d.uuid[0]), Name: C.GoString(&d.name[0]), PCI: C.GoString(&d.pci[0]),
			MemoryBytes: uint64(d.memory_bytes), Major: int(d.major), Minor: int(d.minor),
			Multiprocessors: int(d.multiprocessors), ClockKHz: int(d.clock_khz),
		})
	}
	return all, nil
}

func (s *Shape) c() C.prcuda_shape {
	n := func(v int) C.uint64_t { return C.uint64_t(v) }
	return C.prcuda_shape{
		rows: n(s.Rows), inputs: n(s.Inputs), aux: n(s.Aux), full_a: n(s.FullA), full_b: n(s.FullB),
		full_aux: n(s.FullAux), h: n(s.H), l: n(s.L), a: n(s.A), b: n(s.B),
	}
}

func planOf(p *C.prcuda_plan) Plan {
	return Plan{
		PeakBytes: uint64(p.peak_bytes), SharedBytes: uint64(p.shared_bytes), PendingBytes: uint64(p.pending_bytes),
		PinnedBytes: uint64(p.pinned_bytes), Pending: int(p.pending), Resident: p.resident != 0,
	}
}

// Plan computes what a circuit takes with up to so many proofs pending in arenaBytes of device memory (0 for no limit);
// it has fewer where they do not fit. When not one does, the error wraps ErrMemory and PeakBytes is what one needs.
func (l *Library) Plan(s Shape, arenaBytes uint64, pending int) (Plan, error) {
	shape := s.c()
	var p C.prcuda_plan
	err := l.check("plan a circuit", C.api_plan(l.api, &shape, C.uint64_t(arenaBytes), C.int32_t(pending), &p))
	return planOf(&p), err
}
