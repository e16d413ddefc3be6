//go:build cgo

package dl

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// Library is a loaded one.
type Library struct{ handle unsafe.Pointer }

// Open loads the library at a path, or of a name that the system's loader looks for.
func Open(path string) (*Library, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	C.dlerror()
	handle := C.dlopen(name, C.RTLD_NOW|C.RTLD_LOCAL)
	if handle == nil {
		return nil, fmt.Errorf("load library: %w", lastError())
	}
	return &Library{handle}, nil
}

// Symbol is the address of a function.
func (l *Library) Symbol(name string) (unsafe.Pointer, error) {
	symbol := C.CString(name)
	defer C.free(unsafe.Pointer(symbol))
	C.dlerror()
	address := C.dlsym(l.handle, symbol)
	if address == nil {
		return nil, fmt.Errorf("find %s: %w", name, lastError())
	}
	return address, nil
}

func lastError() error {
	if text := C.dlerror(); text != nil {
		return errors.New(C.GoString(text))
	}
	return errors.New("no reason given")
}
