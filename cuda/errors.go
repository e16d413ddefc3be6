package cuda

import (
	"errors"
	"fmt"
)

// What callers tell apart; errors wrap them.
var (
	// ErrNoDevice: there is no device to be had. The error says why: no library, no driver, one that is too old, or
	// no such device.
	ErrNoDevice = errors.New("no CUDA device")
	// ErrMemory: the arena, the device's memory or the host's is too small.
	ErrMemory = errors.New("out of memory")
	// ErrAborted: Pending.Abort was called.
	ErrAborted = errors.New("aborted")
	// ErrBusy: as many proofs are pending as the plan has.
	ErrBusy = errors.New("device is busy")
)

// Code is what a status of the library says (include/proofrack_cuda.h).
type Code int32

// The codes.
const (
	CodeArgument   Code = 1
	CodeNoDriver   Code = 2
	CodeOldDriver  Code = 3
	CodeNoDevice   Code = 4
	CodeMemory     Code = 5
	CodeHostMemory Code = 6
	CodeAborted    Code = 7
	CodeDevice     Code = 8
	CodeBusy       Code = 9
	CodeQuotient   Code = 10
	CodeInternal   Code = 11
)

// Error is a status of the library that is not OK.
type Error struct {
	Code    Code
	Message string
}

// Error is the message and the code.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("CUDA library gave code %d", e.Code)
	}
	return fmt.Sprintf("%s (CUDA library code %d)", e.Message, e.Code)
}

// Unwrap is the sentinel of the code, if it has one.
func (e *Error) Unwrap() error {
	switch e.Code {
	case CodeNoDriver, CodeOldDriver, CodeNoDevice:
		return ErrNoDevice
	case CodeMemory, CodeHostMemory:
		return ErrMemory
	case CodeAborted:
		return ErrAborted
	case CodeBusy:
		return ErrBusy
	case CodeArgument, CodeDevice, CodeQuotient, CodeInternal:
	}
	return nil
}
