//go:build cgo

package cuda

// #include <stdlib.h>
// #include "api.h"
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
)

// The library has points as gnark-crypto has them in memory.
var (
	_ [96]byte  = [unsafe.Sizeof(bls12381.G1Affine{})]byte{}
	_ [192]byte = [unsafe.Sizeof(bls12381.G2Affine{})]byte{}
)

// Device is an opened device. Its methods may be called from several goroutines, Close only when nothing else is.
type Device struct {
	library *Library
	handle  *C.prcuda_device
}

// Open opens the device with that UUID, never one by a number (B21), and takes its memory at once.
func (l *Library) Open(uuid string, o Options) (*Device, error) {
	name := C.CString(uuid)
	defer C.free(unsafe.Pointer(name))
	options := C.prcuda_options{
		arena_bytes: C.uint64_t(o.ArenaBytes), pinned_bytes: C.uint64_t(o.PinnedBytes), threads: C.int32_t(o.Threads),
	}
	d := &Device{library: l}
	if err := l.check("open device "+uuid, C.api_open(l.api, name, &options, &d.handle)); err != nil {
		return nil, err
	}
	return d, nil
}

// Close gives the device back. Its parameters were closed before.
func (d *Device) Close() error {
	return d.library.check("close device", C.api_close(d.library.api, d.handle))
}

// Memory is what the device has and uses now.
func (d *Device) Memory() (Memory, error) {
	var m C.prcuda_memory
	if err := d.library.check("ask for a device's memory", C.api_get_memory(d.library.api, d.handle, &m)); err != nil {
		return Memory{}, err
	}
	return Memory{
		FreeBytes: uint64(m.free_bytes), TotalBytes: uint64(m.total_bytes), ArenaBytes: uint64(m.arena_bytes),
		ArenaUsed: uint64(m.arena_used), ArenaPeak: uint64(m.arena_peak), PinnedBytes: uint64(m.pinned_bytes),
	}, nil
}

// Params are a circuit's parameters on a device.
type Params struct {
	device *Device
	handle *C.prcuda_params
	pinner runtime.Pinner // of what the library reads until Close
}

// Load brings a circuit's parameters to the device, or prepares to stream them, for up to so many proofs at once.
func (d *Device) Load(s Shape, points Points, pending int) (*Params, error) {
	if err := points.check(s); err != nil {
		return nil, err
	}
	p := &Params{device: d}
	shape := s.c()
	list := C.prcuda_points{
		h: pin(&p.pinner, points.H), l: pin(&p.pinner, points.L), a: pin(&p.pinner, points.A),
		b1: pin(&p.pinner, points.B1), b2: pin(&p.pinner, points.B2),
		a_aux:    (*C.uint64_t)(pin(&p.pinner, points.AAux)),
		b_aux:    (*C.uint64_t)(pin(&p.pinner, points.BAux)),
		b_inputs: (*C.uint64_t)(pin(&p.pinner, points.BInputs)),
	}
	err := d.library.check("load parameters",
		C.api_params_open(d.library.api, d.handle, &shape, &list, C.int32_t(pending), &p.handle))
	if err != nil {
		p.pinner.Unpin()
		return nil, err
	}
	return p, nil
}

// pin keeps a slice where it is, and gives its first element.
func pin[T any](pinner *runtime.Pinner, s []T) unsafe.Pointer {
	if len(s) == 0 {
		return nil
	}
	first := unsafe.SliceData(s)
	pinner.Pin(first)
	return unsafe.Pointer(first)
}

// check compares the lists with the shape: the library reads as many as that says.
func (p *Points) check(s Shape) error {
	words := func(n int) int { return (n + 63) / 64 }
	for _, c := range []struct {
		name      string
		has, want int
	}{
		{"h", len(p.H), s.H}, {"l", len(p.L), s.L}, {"a", len(p.A), s.A}, {"b1", len(p.B1), s.B}, {"b2", len(p.B2), s.B},
		{"density words of a", len(p.AAux), words(s.Aux)}, {"density words of b", len(p.BAux), words(s.Aux)},
		{"density words of b's inputs", len(p.BInputs), words(s.Inputs)},
	} {
		if c.has != c.want {
			return fmt.Errorf("load parameters: %w", &Error{Code: CodeArgument,
				Message: fmt.Sprintf("list %s has %d, the circuit %d", c.name, c.has, c.want)})
		}
	}
	return nil
}

// Plan is what the parameters were loaded with.
func (p *Params) Plan() (Plan, error) {
	var plan C.prcuda_plan
	err := p.device.library.check("ask for a plan", C.api_params_plan(p.device.library.api, p.handle, &plan))
	return planOf(&plan), err
}

// Close gives the parameters' memory back. Their pending proofs were closed before.
func (p *Params) Close() error {
	err := p.device.library.check("close parameters", C.api_params_close(p.device.library.api, p.handle))
	if err == nil {
		p.pinner.Unpin()
	}
	return err
}

// Pending is one proof. Abort may be called at any time before Close, all else by one goroutine.
type Pending struct {
	params *Params
	handle *C.prcuda_pending
}

// Begin makes room for a proof. The error wraps ErrBusy when the plan has no more.
func (p *Params) Begin() (*Pending, error) {
	w := &Pending{params: p}
	library := p.device.library
	if err := library.check("begin a proof", C.api_pending_open(library.api, p.handle, &w.handle)); err != nil {
		return nil, err
	}
	return w, nil
}

func (l *Layout) c(bytes int) C.prcuda_layout {
	n := func(v int) C.uint64_t { return C.uint64_t(v) }
	return C.prcuda_layout{
		bytes: n(bytes), inputs: n(l.Inputs), a0: n(l.A0), a1: n(l.A1), b0: n(l.B0), a_full: n(l.AFull),
		b_full: n(l.BFull), x0: n(l.X0), x_full: n(l.XFull), rank_a: n(l.RankA), rank_b: n(l.RankB), rank_x: n(l.RankX),
		list_a: n(l.ListA), list_b: n(l.ListB), list_x: n(l.ListX),
	}
}

// Start computes the quotient and the sums in G1. When it returns, a and b of the segment are not needed any more.
func (w *Pending) Start(segment []byte, l Layout) error {
	layout := l.c(len(segment))
	library := w.params.device.library
	return library.check("start a proof",
		C.api_start(library.api, w.handle, unsafe.Pointer(unsafe.SliceData(segment)), &layout))
}

// Finish adds the sum in G2. The segment is not read any more.
func (w *Pending) Finish() (Sums, error) {
	library := w.params.device.library
	var sums C.prcuda_sums
	err := library.check("finish a proof", C.api_finish(library.api, w.handle, &sums))
	if err != nil {
		return Sums{}, err
	}
	return Sums{
		A:  *(*bls12381.G1Affine)(unsafe.Pointer(&sums.a)),
		B1: *(*bls12381.G1Affine)(unsafe.Pointer(&sums.b1)),
		C:  *(*bls12381.G1Affine)(unsafe.Pointer(&sums.c)),
		B2: *(*bls12381.G2Affine)(unsafe.Pointer(&sums.b2)),
	}, nil
}

// Timings are those so far.
func (w *Pending) Timings() (Timings, error) {
	library := w.params.device.library
	var t C.prcuda_timings
	if err := library.check("ask for timings", C.api_get_timings(library.api, w.handle, &t)); err != nil {
		return Timings{}, err
	}
	return Timings{
		Upload: float64(t.upload), Quotient: float64(t.quotient), H: float64(t.h), L: float64(t.l), A: float64(t.a),
		B1: float64(t.b1), B2: float64(t.b2), Busy: float64(t.busy), UploadedBytes: uint64(t.uploaded_bytes),
		StreamedBytes: uint64(t.streamed_bytes), PeakBytes: uint64(t.peak_bytes),
	}, nil
}

// Abort has a Start or Finish that runs, or comes, end soon with ErrAborted.
func (w *Pending) Abort() { C.api_abort(w.params.device.library.api, w.handle) }

// Close gives back what the proof has on the device. No other method may be running.
func (w *Pending) Close() error {
	library := w.params.device.library
	return library.check("close a proof", C.api_pending_close(library.api, w.handle))
}
