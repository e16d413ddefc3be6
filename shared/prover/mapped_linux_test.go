package prover

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// mappings counts the mappings that hold an address.
func mappings(t *testing.T, address uintptr) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			t.Fatal(err)
		}
		if from <= address && address < to {
			count++
		}
	}
	return count
}

// Not parallel: other tests' mappings would come where the freed one was.
func TestMappedVectorsComeAndGo(t *testing.T) {
	var tracked []string
	var address uintptr
	m := newMapped(func(bytes int64) (released, gone func()) {
		tracked = append(tracked, fmt.Sprint(bytes))
		return func() { tracked = append(tracked, fmt.Sprint("released ", mappings(t, address))) },
			func() { tracked = append(tracked, fmt.Sprint("gone ", mappings(t, address))) }
	})
	v, err := m.Allocate(1 << 17)
	if err != nil {
		t.Fatal(err)
	}
	for i := range v {
		if !v[i].IsZero() {
			t.Fatalf("element %d is not zero", i)
		}
		v[i].SetOne()
	}
	address = uintptr(unsafe.Pointer(&v[1000]))
	before := mappings(t, address)
	m.Free(v)
	if after := mappings(t, address); before != 1 || after != 0 {
		t.Errorf("%d mappings, %d after it was freed", before, after)
	}
	if diff := cmp.Diff([]string{"4194304", "released 1", "gone 0"}, tracked); diff != "" {
		t.Error(diff)
	}
}

func TestMappingTooMuchIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := newMapped(nil).Allocate(1 << 52); err == nil {
		t.Error("2^52 elements were mapped")
	}
}
