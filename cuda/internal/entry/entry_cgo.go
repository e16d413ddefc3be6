//go:build cgo

package entry

/*
#include "../../include/proofrack_cuda.h"

typedef prcuda_status (*entry_function)(const uint64_t *args, int32_t count);

static prcuda_status entry_call(void *function, const uint64_t *args, int32_t count) {
	return ((entry_function)function)(args, count);
}

static void entry_free(void *function, char *message) { ((void (*)(void *))function)(message); }
*/
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	"github.com/proofrack/proofrack/cuda/internal/dl"
)

// Error is a status with a code other than 0.
type Error struct {
	Code    int
	Message string
}

// Error is the message and the code.
func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Library is the loaded host-compiled library.
type Library struct {
	file *dl.Library
	free unsafe.Pointer
}

// Path is where `make cuda-host` puts the library.
func Path() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "build", "libproofrack_cuda_host.so")
}

// Open loads the library, or fails the test with the command that makes it.
func Open(t testing.TB) *Library {
	t.Helper()
	if _, err := os.Stat(Path()); err != nil {
		t.Fatalf("%v: make it with `make cuda-host`", err)
	}
	file, err := dl.Open(Path())
	if err != nil {
		t.Fatalf("%v (`make cuda-host` makes it)", err)
	}
	free, err := file.Symbol("prcuda_free")
	if err != nil {
		t.Fatal(err)
	}
	return &Library{file, free}
}

// Call calls a test entry. Arguments are whole numbers and slices of anything without pointers.
func (l *Library) Call(name string, arguments ...any) error {
	function, err := l.file.Symbol(name)
	if err != nil {
		return fmt.Errorf("%w (`make cuda-host` makes it)", err)
	}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	words := make([]uint64, len(arguments)+1) // never empty
	for i, argument := range arguments {
		switch v := reflect.ValueOf(argument); v.Kind() {
		case reflect.Slice:
			if v.Len() > 0 {
				pinner.Pin(v.UnsafePointer())
				words[i] = uint64(uintptr(v.UnsafePointer()))
			}
		case reflect.Int, reflect.Int32, reflect.Int64:
			words[i] = uint64(v.Int()) //nolint:gosec // the entry reads it back as it was
		case reflect.Uint, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
			words[i] = v.Uint()
		default:
			panic(fmt.Sprintf("entry: argument %d of %s is a %T", i, name, argument))
		}
	}
	status := C.entry_call(function, (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(words))), C.int32_t(len(arguments)))
	if status.code == 0 {
		return nil
	}
	e := &Error{Code: int(status.code), Message: C.GoString(status.message)}
	C.entry_free(l.free, status.message)
	return e
}
