package compact_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// TestMemoryIsReusedForAnotherPartition: larger, smaller and equal segments follow each other in the same memory, and
// each has the bytes that it has in memory of its own.
func TestMemoryIsReusedForAnotherPartition(t *testing.T) {
	t.Parallel()
	largest, err := compact.LayoutOf(mixedScript(12800))
	if err != nil {
		t.Fatal(err)
	}
	memory := largest.Memory()
	for partition, rows := range []int{12800, 640, 6400, 6400, 128, 12800} {
		script := mixedScript(rows)
		script.sections[0][0].b ^= uint64(partition) // partitions of one circuit differ in their values
		job := compact.Job{Circuit: script, Witness: script, Partition: partition, Workers: 3}
		if _, err := job.Synthesize(context.Background(), memory); err != nil {
			t.Fatal(err)
		}
		s, err := compact.Open(memory)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(2); err != nil {
			t.Fatal(err)
		}
		if s.Partition() != partition {
			t.Errorf("partition: got %d, want %d", s.Partition(), partition)
		}
		layout, err := compact.LayoutOf(script)
		if err != nil {
			t.Fatal(err)
		}
		own := layout.Memory()
		if _, err := job.Synthesize(context.Background(), own); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(own, memory[:layout.Bytes()]) {
			t.Errorf("partition %d of %d rows has other bytes in memory of its own", partition, rows)
		}
	}
}

func TestForeignMemoryIsRefused(t *testing.T) {
	t.Parallel()
	_, good := synthesize(t, mixedScript(640), 1)
	random := make([]byte, len(good))
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	swapped := slices.Clone(good)
	for i := 0; i < len(swapped); i += 8 {
		slices.Reverse(swapped[i : i+8])
	}
	for name, memory := range map[string][]byte{
		"zeros":            make([]byte, len(good)),
		"ones":             bytes.Repeat([]byte{0xff}, len(good)),
		"random":           random,
		"a slice's mark":   append([]byte("PRSLICE\x00"), good[8:]...),
		"mark and zeros":   append([]byte("PRSEGMNT"), make([]byte, len(good)-8)...),
		"mark and ones":    append([]byte("PRSEGMNT"), bytes.Repeat([]byte{0xff}, len(good)-8)...),
		"other byte order": swapped,
		"a page later":     good[4096:],
	} {
		if _, err := compact.Open(memory); !errors.Is(err, compact.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
	}
}

func TestMisalignedMemoryIsRefused(t *testing.T) {
	t.Parallel()
	s, good := synthesize(t, mixedScript(640), 1)
	layout, err := compact.NewLayout(s.Counts())
	if err != nil {
		t.Fatal(err)
	}
	larger := append(layout.Memory(), make([]byte, 16)...)
	for shift := range 9 {
		memory := larger[shift : shift+len(good)]
		copy(memory, good)
		_, err := compact.Open(memory)
		if aligned := uintptr(unsafe.Pointer(&memory[0]))%8 == 0; aligned && err != nil {
			t.Errorf("shift %d: %v", shift, err)
		} else if !aligned && (!errors.Is(err, compact.ErrCorrupt) || !strings.Contains(err.Error(), "aligned")) {
			t.Errorf("shift %d: got %v, want ErrCorrupt for its alignment", shift, err)
		}
	}
}

func TestVerifyNamesTheDamagedBlock(t *testing.T) {
	t.Parallel()
	s, memory := synthesize(t, severalBlocks(), 2)
	const block = 1 << 20
	for at, want := range map[int]string{
		4096: "block 0 ", 4096 + block - 1: "block 0 ", 4096 + block: "block 1 ", 4096 + 2*block: "block 2 ",
	} {
		memory[at] ^= 1
		for count := range 4 {
			if err := s.Verify(count); !errors.Is(err, compact.ErrCorrupt) || !strings.Contains(err.Error(), want) {
				t.Errorf("byte %d flipped, %d goroutines: got %v, want ErrCorrupt that names %s", at, count, err, want)
			}
		}
		memory[at] ^= 1
	}
	if err := s.Verify(3); err != nil {
		t.Errorf("restored: %v", err)
	}
}

// TestSegmentsHaveTheDocumentedSize: the table of docs/formats.md, and the bound that a rack is planned with.
func TestSegmentsHaveTheDocumentedSize(t *testing.T) {
	t.Parallel()
	for size, want := range map[sdr.SectorSize][4]int{
		sdr.Size2KiB:   {6295552, 2483556, 1693188, 2075840},
		sdr.Size8MiB:   {13246464, 5106588, 3556428, 4548316},
		sdr.Size512MiB: {16719872, 6418104, 4488048, 5784544},
		sdr.Size32GiB:  {265842688, 106721628, 72033724, 87040864},
		sdr.Size64GiB:  {274612224, 109975592, 74417984, 90164568},
	} {
		l, err := compact.LayoutOf(porep.ForSize(size))
		if err != nil {
			t.Fatal(err)
		}
		a, b, aux := l.VectorBytes()
		if got := [4]int{l.Bytes(), a, b, aux}; got != want {
			t.Errorf("%s: got %d, want %d", size, got, want)
		}
		if bound := 3 << 30 / 10; l.Bytes() > bound {
			t.Errorf("%s: a segment has %d bytes, more than %d", size, l.Bytes(), bound)
		}
	}
}
