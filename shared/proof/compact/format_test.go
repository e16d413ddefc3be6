package compact_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/big"
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/proof/r1cs/r1cstest"
)

// plainReader decodes a segment by docs/formats.md "Segment" alone: it uses no layout, no views of memory and no rank
// index, and takes field elements out of Montgomery form with big integers.
type plainReader struct {
	data []byte
	next int // where the next part begins
	err  error
}

func (r *plainReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// part takes the next part and looks at the gap behind it.
func (r *plainReader) part(bytes int) []byte {
	end := r.next + bytes
	next := (end + 4095) / 4096 * 4096
	if next > len(r.data) {
		r.fail("part of %d bytes at %d leaves the segment", bytes, r.next)
		return make([]byte, bytes)
	}
	for i, b := range r.data[end:next] {
		if b != 0 {
			r.fail("byte %d of a gap is %d", end+i, b)
		}
	}
	p := r.data[r.next:end]
	r.next = next
	return p
}

// plane is one bit per position. Bits behind the last must be zero.
func (r *plainReader) plane(n int) []byte {
	words := r.part(8 * ((n + 63) / 64))
	bits := make([]byte, 8*len(words))
	for i := range bits {
		bits[i] = byte(binary.LittleEndian.Uint64(words[i/64*8:]) >> (i % 64) & 1)
		if i >= n && bits[i] != 0 {
			r.fail("bit %d of a plane of %d is set", i, n)
		}
	}
	return bits[:n]
}

// elements are n values below r, times 2^256.
func (r *plainReader) elements(n int) []fr.Element {
	radix := new(big.Int).Lsh(big.NewInt(1), 256)
	radix.ModInverse(radix, fr.Modulus())
	list := r.part(32 * n)
	out := make([]fr.Element, n)
	for i := range out {
		v := new(big.Int)
		for limb := 3; limb >= 0; limb-- {
			v.Lsh(v, 64).Add(v, new(big.Int).SetUint64(binary.LittleEndian.Uint64(list[32*i+8*limb:])))
		}
		if v.Cmp(fr.Modulus()) >= 0 {
			r.fail("element %d is not below r", i)
		}
		out[i].SetBigInt(v.Mul(v, radix))
	}
	return out
}

// values puts a vector together; high is nil where codes have one bit.
func (r *plainReader) values(low, high, marks []byte, list []fr.Element) []fr.Element {
	out := make([]fr.Element, len(low))
	for i := range out {
		code := low[i]
		if high != nil {
			code += 2 * high[i]
		}
		switch {
		case marks[i] == 1 && (code != 0 || len(list) == 0):
			r.fail("marked position %d has code %d, %d elements left", i, code, len(list))
		case marks[i] == 1:
			out[i], list = list[0], list[1:]
		case code == 3:
			out[i].SetInt64(-1)
		default:
			out[i].SetUint64(uint64(code))
		}
	}
	if len(list) > 0 {
		r.fail("%d elements without a mark", len(list))
	}
	return out
}

func (r *plainReader) rank(marks []byte) {
	n := uint32(0)
	entries := r.part(4 * ((len(marks) + 4095) / 4096))
	for i, mark := range marks {
		if i%4096 == 0 && binary.LittleEndian.Uint32(entries[i/4096*4:]) != n {
			r.fail("rank entry %d is not %d", i/4096, n)
		}
		n += uint32(mark)
	}
}

func (r *plainReader) checksums() {
	payload := r.data[4096:r.next]
	blocks := (len(payload) + 1<<20 - 1) >> 20
	sums := r.part(4 * blocks)
	for i := range blocks {
		block := payload[i<<20 : min((i+1)<<20, len(payload))]
		if got := crc32.Checksum(block, crc32.MakeTable(crc32.Castagnoli)); got != binary.LittleEndian.Uint32(sums[4*i:]) {
			r.fail("checksum %d is not %08x", i, got)
		}
	}
}

// count is one of the six counts of the header.
func (r *plainReader) count(i int) int { return int(binary.LittleEndian.Uint64(r.data[88+8*i:])) }

func (r *plainReader) header(id string, partition uint64) {
	h := r.data[:4096]
	want := binary.LittleEndian.AppendUint32(append([]byte("PRSEGMNT"), 1, 0, 0, 0), 1<<20)
	want = append(append(want, id...), make([]byte, 64-len(id))...)
	want = binary.LittleEndian.AppendUint64(want, partition)
	if string(h[:len(want)]) != string(want) {
		r.fail("header begins with %x, want %x", h[:len(want)], want)
	}
	if crc32.Checksum(h[:136], crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(h[136:]) {
		r.fail("header checksum differs")
	}
	for i, b := range h[140:] {
		if b != 0 {
			r.fail("header byte %d is %d", 140+i, b)
		}
	}
	r.next = len(h)
}

// readPlain decodes a whole segment.
func readPlain(data []byte, id string, partition uint64) (*dense, error) {
	r := &plainReader{data: data}
	r.header(id, partition)
	rows, inputs, aux := r.count(0), r.count(1), r.count(2)
	d := &dense{inputs: r.elements(inputs)}
	n := rows + inputs
	a0, a1, b0, fullA, fullB := r.plane(n), r.plane(n), r.plane(n), r.plane(n), r.plane(n)
	x0, fullX := r.plane(aux), r.plane(aux)
	r.rank(fullA)
	r.rank(fullB)
	r.rank(fullX)
	d.a = r.values(a0, a1, fullA, r.elements(r.count(3)+inputs))
	d.b = r.values(b0, nil, fullB, r.elements(r.count(4)))
	d.aux = r.values(x0, nil, fullX, r.elements(r.count(5)))
	r.checksums()
	if r.next != len(data) {
		r.fail("the last part ends at %d, the segment at %d", r.next, len(data))
	}
	for _, mark := range fullX {
		d.auxFull = append(d.auxFull, mark == 1)
	}
	return d, r.err
}

func TestSegmentHasTheDocumentedFormat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		checkFormat(t, drawScript(t))
	})
}

func TestSegmentOfSeveralChecksumBlocksHasTheDocumentedFormat(t *testing.T) {
	t.Parallel()
	checkFormat(t, severalBlocks())
}

// severalBlocks needs two whole checksum blocks and a shorter one.
func severalBlocks() *scripted { return mixedScript(1_200_000) }

func checkFormat(t r1cstest.TB, script *scripted) {
	t.Helper()
	_, memory := synthesize(t, script, 4)
	want := denseOf(script)
	got, err := readPlain(memory, script.id, 5)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string][2][]fr.Element{
		"a": {want.a, got.a}, "b": {want.b, got.b}, "aux": {want.aux, got.aux}, "inputs": {want.inputs, got.inputs},
	} {
		if !slices.Equal(v[0], v[1]) {
			t.Fatalf("%s differs; want %d values, got %d", name, len(v[0]), len(v[1]))
		}
	}
	if !slices.Equal(want.auxFull, got.auxFull) {
		t.Fatal("full auxiliaries differ")
	}
}
