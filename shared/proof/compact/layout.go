package compact

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// Sizes and marks of the format (docs/formats.md "Segment").
const (
	magic       = "PRSEGMNT"
	Version     = 1
	HeaderBytes = 4096
	// AlignBytes is where every part of a segment begins; the segment's memory must be aligned to 8 bytes.
	AlignBytes = 4096
	// ChecksumBlockBytes is the unit of checksums: one CRC-32C each.
	ChecksumBlockBytes = 1 << 20
	// rankBlock is how many positions share one entry of a rank index.
	rankBlock  = 4096
	idBytesMax = 64
)

// ErrCorrupt is wrapped by every refusal of a segment's bytes.
var ErrCorrupt = errors.New("segment is corrupt")

// part is one array of a segment.
type part struct{ offset, bytes int }

func (p part) end() int { return p.offset + p.bytes }

// The planes of a row, in the order in which they are stored.
const (
	planeA0 = iota
	planeA1
	planeB0
	planeAFull
	planeBFull
	rowPlanes
)

// The planes of an auxiliary.
const (
	planeX0 = iota
	planeXFull
	auxPlanes
)

// Layout is where everything is in the segments of one circuit.
type Layout struct {
	counts r1cs.Position // circuit totals

	inputs              part
	rows                [rowPlanes]part
	aux                 [auxPlanes]part
	rankA, rankB, rankX part
	fullA, fullB, fullX part
	checksums           part
	payloadEnd          int
}

// countMax bounds rows and variables: the FFT domain of BLS12-381 ends at 2^32, and indices are 31 bits wide.
const countMax = 1 << 31

// NewLayout computes the layout for a circuit's totals. It refuses totals that cannot be a circuit's.
func NewLayout(counts r1cs.Position) (*Layout, error) {
	for _, n := range []int{counts.Rows, counts.Inputs, counts.Aux, counts.FullA, counts.FullB, counts.FullAux} {
		if n < 0 || n >= countMax {
			return nil, fmt.Errorf("%w: count %d outside 0…%d", ErrCorrupt, n, countMax)
		}
	}
	if counts.Inputs < 1 || counts.FullA > counts.Rows || counts.FullB > counts.Rows || counts.FullAux > counts.Aux {
		return nil, fmt.Errorf("%w: counts %+v contradict each other", ErrCorrupt, counts)
	}
	l := &Layout{counts: counts}
	next := HeaderBytes
	place := func(bytes int) part {
		p := part{offset: next, bytes: bytes}
		next = (p.end() + AlignBytes - 1) &^ (AlignBytes - 1)
		return p
	}
	rowWords, auxWords := words(counts.RowsTotal()), words(counts.Aux)
	l.inputs = place(counts.Inputs * fr.Bytes)
	for i := range l.rows {
		l.rows[i] = place(8 * rowWords)
	}
	for i := range l.aux {
		l.aux[i] = place(8 * auxWords)
	}
	l.rankA, l.rankB = place(rankBytes(counts.RowsTotal())), place(rankBytes(counts.RowsTotal()))
	l.rankX = place(rankBytes(counts.Aux))
	l.fullA = place((counts.FullA + counts.Inputs) * fr.Bytes)
	l.fullB, l.fullX = place(counts.FullB*fr.Bytes), place(counts.FullAux*fr.Bytes)
	l.payloadEnd = next
	l.checksums = place(4 * ((l.payloadEnd - HeaderBytes + ChecksumBlockBytes - 1) / ChecksumBlockBytes))
	return l, nil
}

func words(n int) int { return (n + 63) / 64 }

func rankBytes(n int) int { return 4 * ((n + rankBlock - 1) / rankBlock) }

// Bytes is the size of a segment.
func (l *Layout) Bytes() int { return (l.checksums.end() + AlignBytes - 1) &^ (AlignBytes - 1) }

// VectorBytes is how many bytes each vector takes: codes, rank index and full elements.
func (l *Layout) VectorBytes() (a, b, aux int) {
	a = l.rows[planeA0].bytes + l.rows[planeA1].bytes + l.rows[planeAFull].bytes + l.rankA.bytes + l.fullA.bytes
	b = l.rows[planeB0].bytes + l.rows[planeBFull].bytes + l.rankB.bytes + l.fullB.bytes
	aux = l.aux[planeX0].bytes + l.aux[planeXFull].bytes + l.rankX.bytes + l.fullX.bytes
	return a, b, aux
}

// header is the head of a segment.
type header struct {
	circuitID string
	partition int
	counts    r1cs.Position
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Offsets within the header.
const (
	offVersion   = 8
	offBlock     = 12
	offID        = 16
	offPartition = offID + idBytesMax
	offCounts    = offPartition + 8
	offHeaderCRC = offCounts + 6*8
)

func (h *header) encode(dst []byte) error {
	if len(h.circuitID) == 0 || len(h.circuitID) > idBytesMax {
		return fmt.Errorf("circuit id %q: length must be 1…%d", h.circuitID, idBytesMax)
	}
	clear(dst[:HeaderBytes])
	copy(dst, magic)
	binary.LittleEndian.PutUint32(dst[offVersion:], Version)
	binary.LittleEndian.PutUint32(dst[offBlock:], ChecksumBlockBytes)
	copy(dst[offID:], h.circuitID)
	binary.LittleEndian.PutUint64(dst[offPartition:], uint64(h.partition))
	for i, n := range h.fields() {
		binary.LittleEndian.PutUint64(dst[offCounts+8*i:], uint64(*n))
	}
	binary.LittleEndian.PutUint32(dst[offHeaderCRC:], crc32.Checksum(dst[:offHeaderCRC], castagnoli))
	return nil
}

func (h *header) fields() []*int {
	c := &h.counts
	return []*int{&c.Rows, &c.Inputs, &c.Aux, &c.FullA, &c.FullB, &c.FullAux}
}

func decodeHeader(src []byte) (*header, error) {
	if len(src) < HeaderBytes {
		return nil, fmt.Errorf("%w: %d bytes, a header has %d", ErrCorrupt, len(src), HeaderBytes)
	}
	if string(src[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: no %s mark at the start (not sealed, or not a segment)", ErrCorrupt, magic)
	}
	if v := binary.LittleEndian.Uint32(src[offVersion:]); v != Version {
		return nil, fmt.Errorf("%w: format version %d, this build reads %d", ErrCorrupt, v, Version)
	}
	got, want := crc32.Checksum(src[:offHeaderCRC], castagnoli), binary.LittleEndian.Uint32(src[offHeaderCRC:])
	if got != want {
		return nil, fmt.Errorf("%w: header checksum %08x, expected %08x", ErrCorrupt, got, want)
	}
	if b := binary.LittleEndian.Uint32(src[offBlock:]); b != ChecksumBlockBytes {
		return nil, fmt.Errorf("%w: checksum block of %d bytes, expected %d", ErrCorrupt, b, ChecksumBlockBytes)
	}
	if !allZero(src[offHeaderCRC+4 : HeaderBytes]) {
		return nil, fmt.Errorf("%w: bytes behind the header's checksum are not zero", ErrCorrupt)
	}
	h := &header{}
	id := src[offID : offID+idBytesMax]
	for len(id) > 0 && id[len(id)-1] == 0 {
		id = id[:len(id)-1]
	}
	if len(id) == 0 {
		return nil, fmt.Errorf("%w: no circuit id", ErrCorrupt)
	}
	h.circuitID = string(id)
	partition := binary.LittleEndian.Uint64(src[offPartition:])
	if partition >= countMax {
		return nil, fmt.Errorf("%w: partition %d", ErrCorrupt, partition)
	}
	h.partition = int(partition)
	for i, n := range h.fields() {
		v := binary.LittleEndian.Uint64(src[offCounts+8*i:])
		if v >= countMax {
			return nil, fmt.Errorf("%w: count %d is %d, the limit is %d", ErrCorrupt, i, v, countMax)
		}
		*n = int(v)
	}
	return h, nil
}

func allZero(b []byte) bool {
	return !slices.ContainsFunc(b, func(v byte) bool { return v != 0 })
}

// Counts are the circuit's totals.
func (l *Layout) Counts() r1cs.Position { return l.counts }
