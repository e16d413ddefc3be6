package prover

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"
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
	v, err := mapped{}.Allocate(1 << 17)
	if err != nil {
		t.Fatal(err)
	}
	for i := range v {
		if !v[i].IsZero() {
			t.Fatalf("element %d is not zero", i)
		}
		v[i].SetOne()
	}
	address := uintptr(unsafe.Pointer(&v[1000]))
	before := mappings(t, address)
	mapped{}.Free(v)
	if after := mappings(t, address); before != 1 || after != 0 {
		t.Errorf("%d mappings, %d after it was freed", before, after)
	}
}

func TestMappingTooMuchIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := (mapped{}).Allocate(1 << 52); err == nil {
		t.Error("2^52 elements were mapped")
	}
}
