package cudadevice

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/proofrack/proofrack/cuda"
	"github.com/proofrack/proofrack/shared/fault"
)

// FileName is the device library's.
const FileName = "libproofrack_cuda.so"

// Find loads the device library at a path; "" looks beside this program, then where the system's loader looks. Errors
// wrap cuda.ErrNoDevice and say what was tried.
func Find(path string) (*cuda.Library, error) {
	if path != "" {
		return cuda.Load(path)
	}
	var tried []error
	if program, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(program), FileName)
		if _, err := os.Stat(beside); err == nil {
			return cuda.Load(beside) // one that is there and cannot be loaded must not be passed over
		}
		tried = append(tried, fmt.Errorf("there is no %s", beside))
	}
	library, err := cuda.Load(FileName)
	if err != nil {
		return nil, errors.Join(append(tried, err)...)
	}
	return library, nil
}

// Devices finds the library and lists its devices. The error says in one line why there are none, and what would help.
func Devices(path string) (*cuda.Library, []cuda.DeviceInfo, error) {
	library, err := Find(path)
	if err != nil {
		return nil, nil, fault.WithHint(fault.As(fault.Device, fmt.Errorf("no device library: %w", err)),
			"make cuda builds "+FileName+"; prove.library says where it is")
	}
	devices, err := library.Devices()
	v := library.Version()
	if err == nil && len(devices) == 0 {
		err = fmt.Errorf("%w: the driver lists none", cuda.ErrNoDevice)
	}
	if err != nil {
		return library, nil, fault.WithHint(fault.As(fault.Device, fmt.Errorf("driver %s: %w", cuda.Release(v.Driver), err)),
			fmt.Sprintf("the library has CUDA %s and needs %s", cuda.Release(v.Runtime), v.Needs()))
	}
	return library, devices, nil
}
