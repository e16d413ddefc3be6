//go:build !cgo

package dl

import (
	"errors"
	"unsafe"
)

var errNoCgo = errors.New("this program was built without cgo")

// Library is never there.
type Library struct{}

// Open loads nothing.
func Open(string) (*Library, error) { return nil, errNoCgo }

// Symbol finds nothing.
func (*Library) Symbol(string) (unsafe.Pointer, error) { return nil, errNoCgo }
