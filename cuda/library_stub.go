//go:build !cgo

package cuda

import "fmt"

// Library cannot be loaded without cgo.
type Library struct{}

// Device, Params and Pending cannot be had without cgo.
type (
	Device  struct{}
	Params  struct{}
	Pending struct{}
)

const stubbed = "cuda: called without a library"

// Load always fails: the program was built without cgo.
func Load(string) (*Library, error) {
	return nil, fmt.Errorf("%w: this program was built without cgo", ErrNoDevice)
}

// Version cannot be called.
func (*Library) Version() Version { panic(stubbed) }

// Devices cannot be called.
func (*Library) Devices() ([]DeviceInfo, error) { panic(stubbed) }

// Plan cannot be called.
func (*Library) Plan(Shape, uint64, int) (Plan, error) { panic(stubbed) }

// Open cannot be called.
func (*Library) Open(string, Options) (*Device, error) { panic(stubbed) }

// Memory cannot be called.
func (*Device) Memory() (Memory, error) { panic(stubbed) }

// Load cannot be called.
func (*Device) Load(Shape, Points, int) (*Params, error) { panic(stubbed) }

// Close cannot be called.
func (*Device) Close() error { panic(stubbed) }

// Plan cannot be called.
func (*Params) Plan() (Plan, error) { panic(stubbed) }

// Begin cannot be called.
func (*Params) Begin() (*Pending, error) { panic(stubbed) }

// Close cannot be called.
func (*Params) Close() error { panic(stubbed) }

// Start cannot be called.
func (*Pending) Start([]byte, Layout) error { panic(stubbed) }

// Finish cannot be called.
func (*Pending) Finish() (Sums, error) { panic(stubbed) }

// Timings cannot be called.
func (*Pending) Timings() (Timings, error) { panic(stubbed) }

// Abort cannot be called.
func (*Pending) Abort() { panic(stubbed) }

// Close cannot be called.
func (*Pending) Close() error { panic(stubbed) }
