package compact_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// openAndVerify is what a reader does before it trusts a segment.
func openAndVerify(memory []byte) error {
	s, err := compact.Open(memory)
	if err != nil {
		return err
	}
	return s.Verify(1)
}

func TestAnyFlippedByteIsFound(t *testing.T) {
	t.Parallel()
	_, memory := synthesize(t, mixedScript(6400), 2)
	for at := 0; at < len(memory); at++ {
		if at > 256 {
			at += at * 31 % 67 // a sample of the rest
			at = min(at, len(memory)-1)
		}
		bit := byte(1) << (at % 8)
		memory[at] ^= bit
		if err := openAndVerify(memory); !errors.Is(err, compact.ErrCorrupt) {
			t.Errorf("byte %d of %d flipped: got %v, want ErrCorrupt", at, len(memory), err)
		}
		memory[at] ^= bit
	}
	if err := openAndVerify(memory); err != nil {
		t.Errorf("restored: %v", err)
	}
}

func TestTwoMixedSegmentsAreFound(t *testing.T) {
	t.Parallel()
	_, one := synthesize(t, mixedScript(6400), 2)
	other := mixedScript(6400)
	other.sections[0][0].a0 ^= 1
	other.sections[2][0].a0 ^= 1
	_, two := synthesize(t, other, 2)
	mixed := slices.Concat(one[:len(one)/2], two[len(two)/2:])
	if err := openAndVerify(mixed); !errors.Is(err, compact.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}

func TestATruncatedSegmentIsRefused(t *testing.T) {
	t.Parallel()
	_, memory := synthesize(t, mixedScript(640), 2)
	for _, n := range []int{0, 1, 8, 135, 140, 4095, 4096, 8192, len(memory) - 1} {
		if _, err := compact.Open(memory[:n]); !errors.Is(err, compact.ErrCorrupt) {
			t.Errorf("%d bytes: got %v, want ErrCorrupt", n, err)
		}
	}
}

// Offsets of docs/formats.md "Segment".
const (
	offVersion   = 8
	offBlock     = 12
	offID        = 16
	offPartition = 80
	offCounts    = 88
)

func TestHeadersThatLieAreRefused(t *testing.T) {
	t.Parallel()
	_, good := synthesize(t, mixedScript(640), 2)
	for name, change := range map[string]func(m []byte){
		"another mark":         func(m []byte) { copy(m, "PRSEGMNX") },
		"another version":      func(m []byte) { m[offVersion]++ },
		"another block size":   func(m []byte) { m[offBlock]++ },
		"no circuit":           func(m []byte) { clear(m[offID:offPartition]) },
		"partition too large":  func(m []byte) { binary.LittleEndian.PutUint64(m[offPartition:], 1<<31) },
		"no inputs":            func(m []byte) { clear(m[offCounts+8 : offCounts+16]) },
		"rows too many":        func(m []byte) { binary.LittleEndian.PutUint64(m[offCounts:], 1<<31) },
		"rows beyond the end":  func(m []byte) { binary.LittleEndian.PutUint64(m[offCounts:], 1<<31-1) },
		"aux beyond the end":   func(m []byte) { binary.LittleEndian.PutUint64(m[offCounts+16:], 1<<31-1) },
		"negative count":       func(m []byte) { binary.LittleEndian.PutUint64(m[offCounts+24:], 1<<64-1) },
		"a full a more":        func(m []byte) { m[offCounts+24]++ },
		"a full b less":        func(m []byte) { m[offCounts+32]-- },
		"a full aux less":      func(m []byte) { m[offCounts+40]-- },
		"a row less":           func(m []byte) { m[offCounts]-- },
		"an input more":        func(m []byte) { m[offCounts+8]++ },
		"reserved bytes":       func(m []byte) { m[200] = 1 },
		"behind the checksums": func(m []byte) { m[len(m)-1] = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := slices.Clone(good)
			change(memory)
			compact.Reseal(memory)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := openAndVerify(memory)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, compact.ErrCorrupt) {
				t.Errorf("got %v, want ErrCorrupt", err)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
				t.Errorf("took %d bytes", grown)
			}
		})
	}
}

// TestMarksWithIntentAreRefused: checksums are right, but the marks do not fit the lists of full elements.
func TestMarksWithIntentAreRefused(t *testing.T) {
	t.Parallel()
	for plane, position := range map[string]int{"full a": 3, "full b": 3, "full x": 3} {
		t.Run(plane, func(t *testing.T) {
			t.Parallel()
			s, memory := synthesize(t, mixedScript(6400), 1)
			words := s.Planes()[plane]
			refuse := func(why string) {
				t.Helper()
				compact.Reseal(memory)
				if err := openAndVerify(memory); !errors.Is(err, compact.ErrCorrupt) {
					t.Errorf("%s: got %v, want ErrCorrupt", why, err)
				}
			}
			words[0] ^= 1 << position
			refuse("one mark more")
			words[len(words)-2] ^= words[len(words)-2] & -words[len(words)-2]
			refuse("one moved to another block")
			words[0] ^= 1 << position
			refuse("one mark less")
		})
	}
}

func TestMarksBehindTheLastPositionAreRefused(t *testing.T) {
	t.Parallel()
	s, memory := synthesize(t, mixedScript(640), 1)
	words := s.Planes()["full b"]
	lowest := words[0] & -words[0]
	words[0] ^= lowest // keeps their number
	words[len(words)-1] |= 1 << 63
	compact.Reseal(memory)
	if err := openAndVerify(memory); !errors.Is(err, compact.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}

// TestCodesWithIntentAreRefused: a code at a marked position or behind the last one would mean one thing to a reader of
// whole vectors and another to one that takes ones and full elements apart.
func TestCodesWithIntentAreRefused(t *testing.T) {
	t.Parallel()
	s, memory := synthesize(t, mixedScript(640), 1)
	planes, n := s.Planes(), s.Counts()
	for name, c := range map[string]struct {
		marks  string
		length int
	}{
		"a0": {"full a", n.RowsTotal()}, "a1": {"full a", n.RowsTotal()}, "b0": {"full b", n.RowsTotal()},
		"x0": {"full x", n.Aux},
	} {
		words := planes[name]
		refuse := func(where string, i int) {
			t.Helper()
			words[i/64] ^= 1 << (i % 64)
			compact.Reseal(memory)
			if err := openAndVerify(memory); !errors.Is(err, compact.ErrCorrupt) {
				t.Errorf("%s %s: got %v, want ErrCorrupt", name, where, err)
			}
			words[i/64] ^= 1 << (i % 64)
		}
		for i := range c.length {
			if planes[c.marks][i/64]>>(i%64)&1 == 1 {
				refuse("of a marked position", i)
			}
		}
		if c.length%64 == 0 {
			t.Fatalf("%s: no position behind the last", name)
		}
		refuse("behind the last position", c.length)
		refuse("at the end of its words", 64*len(words)-1)
	}
	compact.Reseal(memory)
	if err := openAndVerify(memory); err != nil {
		t.Errorf("restored: %v", err)
	}
}

// readEverything reads each value of a segment in several ways.
func readEverything(s *compact.Segment) {
	n := s.Counts()
	for _, block := range []int{1 << 10, 37} {
		dst := make([]fr.Element, block)
		for from := 0; from < n.RowsTotal(); from += block {
			d := dst[:min(block, n.RowsTotal()-from)]
			s.ExpandA(from, d)
			s.ExpandB(from, d)
			s.ExpandC(from, d)
		}
		for from := 0; from < n.Aux; from += block {
			s.ExpandAux(from, dst[:min(block, n.Aux-from)])
			s.AuxFullBefore(from)
		}
	}
	s.AuxFullBefore(n.Aux)
	for i := range min(n.Inputs, 100) {
		s.Value(r1cs.InputVar(i))
	}
	for i := range min(n.Aux, 100) {
		s.Value(r1cs.AuxVar(n.Aux - 1 - i))
	}
	for i, ones := range s.AuxOnes() {
		if ones&s.AuxFullMask()[i] != 0 {
			panic(fmt.Sprintf("auxiliaries %d… are one and full at once: %#x", 64*i, ones&s.AuxFullMask()[i]))
		}
	}
	a, b, aux := s.VectorBytes()
	if got := len(s.AuxOnes()) + len(s.AuxFullMask()) + len(s.AuxFull()); got < 0 || a+b+aux > s.Bytes() {
		panic(fmt.Sprintf("vectors of %d, %d, %d bytes in a segment of %d", a, b, aux, s.Bytes()))
	}
}

// FuzzSegmentRead changes a good segment: it overwrites its start, flips bytes (groups of three bytes of place and one
// of change), cuts it, and makes the checksums right again or not. Whatever passes Open and Verify can be read whole.
func FuzzSegmentRead(f *testing.F) {
	_, good := synthesize(f, mixedScript(640), 1)
	f.Add([]byte{}, []byte{}, uint32(len(good)), false)
	f.Add([]byte("PRSEGMNT\x01"), []byte{0, 0, 88, 1}, uint32(len(good)), true)
	f.Fuzz(func(t *testing.T, start, changes []byte, length uint32, reseal bool) {
		memory := slices.Clone(good)
		copy(memory, start)
		for ; len(changes) >= 4; changes = changes[4:] {
			at := int(changes[0])<<16 | int(changes[1])<<8 | int(changes[2])
			memory[at%len(memory)] ^= changes[3]
		}
		memory = memory[:min(len(memory), int(length))]
		if reseal {
			compact.Reseal(memory)
		}
		s, err := compact.Open(memory)
		if err == nil {
			if err = s.Verify(1); err == nil {
				readEverything(s)
				return
			}
		}
		if !errors.Is(err, compact.ErrCorrupt) {
			t.Errorf("got %v, want ErrCorrupt", err)
		}
	})
}
