//go:build !cgo

package gpu

import (
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/inventory"
)

// DefaultLibrary is where the driver's library would be looked for.
const DefaultLibrary = "libnvidia-ml.so.1"

// NVML is a Library that is never there: the program was built without cgo.
func NVML(string, *inventory.Host) Library { return absentLibrary{} }

type absentLibrary struct{}

// Open implements Library.
func (absentLibrary) Open() (string, error) {
	return "", fault.New(fault.NotFound, "this program was built without cgo")
}

// Read implements Library.
func (absentLibrary) Read() ([]Reading, error) { panic("gpu: read of a library that did not open") }

// Close implements Library.
func (absentLibrary) Close() {}
