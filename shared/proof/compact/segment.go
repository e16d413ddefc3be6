package compact

import (
	"fmt"
	"hash/crc32"
	"math/bits"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/internal/workers"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// Segment is one partition's vectors in the caller's memory. Sealed segments may be read from several goroutines.
type Segment struct {
	*Layout

	circuitID string
	partition int
	data      []byte
}

// create starts a segment in memory. Nothing of what the memory held before is visible afterwards.
func create(memory []byte, l *Layout, circuitID string, partition int, starts []r1cs.Position) (*Segment, error) {
	if err := checkMemory(memory, l); err != nil {
		return nil, err
	}
	s := &Segment{Layout: l, circuitID: circuitID, partition: partition, data: memory[:l.Bytes()]}
	clear(s.data[:HeaderBytes]) // no mark: unsealed
	s.clearShared(starts)
	return s, nil
}

func checkMemory(memory []byte, l *Layout) error {
	if len(memory) < l.Bytes() {
		return fmt.Errorf("segment of %d bytes: memory has %d", l.Bytes(), len(memory))
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(memory)))%8 != 0 {
		return fmt.Errorf("segment of %d bytes: memory is not aligned to 8 bytes", l.Bytes())
	}
	return nil
}

// clearShared zeroes the words that two sections share, and the gaps behind the parts.
func (s *Segment) clearShared(starts []r1cs.Position) {
	for _, p := range starts {
		for i := range s.rows {
			clearWord(s.rowPlane(i), p.Rows)
		}
		for i := range s.aux {
			clearWord(s.auxPlane(i), p.Aux)
		}
	}
	for i := range s.rows {
		clearWord(s.rowPlane(i), s.counts.RowsTotal())
	}
	for _, p := range s.parts() {
		clear(s.data[p.end() : (p.end()+AlignBytes-1)&^(AlignBytes-1)])
	}
}

func clearWord(plane []uint64, position int) {
	if w := position / 64; w < len(plane) {
		plane[w] = 0
	}
}

func (l *Layout) parts() []part {
	all := []part{l.inputs}
	all = append(all, l.rows[:]...)
	all = append(all, l.aux[:]...)
	return append(all, l.rankA, l.rankB, l.rankX, l.fullA, l.fullB, l.fullX, l.checksums)
}

// Open reads a sealed segment's header and lays the vectors out over memory. It does not read the vectors: call Verify
// before trusting them.
func Open(memory []byte) (*Segment, error) {
	h, err := decodeHeader(memory)
	if err != nil {
		return nil, err
	}
	l, err := NewLayout(h.counts)
	if err != nil {
		return nil, err
	}
	if err := checkMemory(memory, l); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return &Segment{Layout: l, circuitID: h.circuitID, partition: h.partition, data: memory[:l.Bytes()]}, nil
}

// CircuitID is the circuit the segment was synthesized for.
func (s *Segment) CircuitID() string { return s.circuitID }

// Partition is the index of the segment's partition.
func (s *Segment) Partition() int { return s.partition }

// view reads a part as an array. Offsets are multiples of AlignBytes and memory is aligned, so the view is, too.
func view[T any](s *Segment, p part) []T {
	var zero T
	b := s.data[p.offset:p.end():p.end()]
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

func (s *Segment) rowPlane(i int) []uint64 { return view[uint64](s, s.rows[i]) }
func (s *Segment) auxPlane(i int) []uint64 { return view[uint64](s, s.aux[i]) }

// Inputs are the inputs, ONE first.
func (s *Segment) Inputs() []fr.Element { return view[fr.Element](s, s.inputs) }

// AuxOnes has bit i set when auxiliary i is 1 and not stored as a full element.
func (s *Segment) AuxOnes() []uint64 { return s.auxPlane(planeX0) }

// AuxFullMask has bit i set when auxiliary i is stored as a full element.
func (s *Segment) AuxFullMask() []uint64 { return s.auxPlane(planeXFull) }

// AuxFull are the auxiliaries that are stored as full elements, in order.
func (s *Segment) AuxFull() []fr.Element { return view[fr.Element](s, s.fullX) }

// AuxFullBefore is the number of full auxiliaries with an index below i.
func (s *Segment) AuxFullBefore(i int) int {
	return rankOf(s.AuxFullMask(), view[uint32](s, s.rankX), i)
}

// rankOf counts the ones of a plane below position i.
func rankOf(plane []uint64, rank []uint32, i int) int {
	if i/rankBlock >= len(rank) { // the end, on a block's edge
		if len(rank) == 0 {
			return 0
		}
		i = min(i, 64*len(plane))
		block := len(rank) - 1
		return int(rank[block]) + onesCount(plane[block*rankBlock/64:i/64])
	}
	block := i / rankBlock
	n := int(rank[block]) + onesCount(plane[block*rankBlock/64:i/64])
	if i%64 != 0 {
		n += bits.OnesCount64(plane[i/64] << (64 - uint(i%64)))
	}
	return n
}

func onesCount(plane []uint64) int {
	n := 0
	for _, w := range plane {
		n += bits.OnesCount64(w)
	}
	return n
}

// seal writes the rank index, the checksums and, last, the header that makes the segment readable.
func (s *Segment) seal(count int) error {
	for _, r := range []struct {
		plane []uint64
		rank  []uint32
		full  int
		name  string
	}{
		{s.rowPlane(planeAFull), view[uint32](s, s.rankA), s.counts.FullA + s.counts.Inputs, "a"},
		{s.rowPlane(planeBFull), view[uint32](s, s.rankB), s.counts.FullB, "b"},
		{s.AuxFullMask(), view[uint32](s, s.rankX), s.counts.FullAux, "aux"},
	} {
		if got := fillRank(r.plane, r.rank); got != r.full {
			panic(fmt.Sprintf("compact: vector %s marks %d full elements, its circuit has %d", r.name, got, r.full))
		}
	}
	if err := s.fillChecksums(count); err != nil {
		return err
	}
	h := header{circuitID: s.circuitID, partition: s.partition, counts: s.counts}
	return h.encode(s.data)
}

func (s *Segment) fillChecksums(count int) error {
	sums := view[uint32](s, s.checksums)
	return s.eachBlock(count, func(i int, block []byte) error {
		sums[i] = crc32.Checksum(block, castagnoli)
		return nil
	})
}

func fillRank(plane []uint64, rank []uint32) int {
	n := 0
	for i := range rank {
		rank[i] = uint32(n)
		from := i * rankBlock / 64
		n += onesCount(plane[from:min(from+rankBlock/64, len(plane))])
	}
	return n
}

// Verify compares all checksums, then the structure that readers rely on. It takes count goroutines, at least one.
func (s *Segment) Verify(count int) error {
	sums := view[uint32](s, s.checksums)
	err := s.eachBlock(count, func(i int, block []byte) error {
		if crc32.Checksum(block, castagnoli) != sums[i] {
			return fmt.Errorf("%w: checksum of block %d (bytes from %d)", ErrCorrupt, i, HeaderBytes+i*ChecksumBlockBytes)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !allZero(s.data[s.checksums.end():]) {
		return fmt.Errorf("%w: bytes behind the checksums are not zero", ErrCorrupt)
	}
	return s.verifyRanks()
}

// verifyRanks makes sure that no reader can be led outside a list of full elements by a segment made with intent, and
// that readers of codes and readers of lists see the same values.
func (s *Segment) verifyRanks() error {
	for _, r := range []struct {
		plane  []uint64
		codes  [][]uint64
		rank   []uint32
		length int
		full   int
	}{
		{
			s.rowPlane(planeAFull), [][]uint64{s.rowPlane(planeA0), s.rowPlane(planeA1)},
			view[uint32](s, s.rankA), s.counts.RowsTotal(), s.counts.FullA + s.counts.Inputs,
		},
		{
			s.rowPlane(planeBFull), [][]uint64{s.rowPlane(planeB0)},
			view[uint32](s, s.rankB), s.counts.RowsTotal(), s.counts.FullB,
		},
		{s.AuxFullMask(), [][]uint64{s.AuxOnes()}, view[uint32](s, s.rankX), s.counts.Aux, s.counts.FullAux},
	} {
		if endsBehind(r.plane, r.length) {
			return fmt.Errorf("%w: marks behind the last position", ErrCorrupt)
		}
		for _, codes := range r.codes {
			if err := verifyCodes(codes, r.plane, r.length); err != nil {
				return err
			}
		}
		n := 0
		for i := range r.rank {
			if int(r.rank[i]) != n {
				return fmt.Errorf("%w: rank entry %d is %d, the plane has %d", ErrCorrupt, i, r.rank[i], n)
			}
			from := i * rankBlock / 64
			n += onesCount(r.plane[from:min(from+rankBlock/64, len(r.plane))])
		}
		if n != r.full {
			return fmt.Errorf("%w: %d positions marked full, %d elements stored", ErrCorrupt, n, r.full)
		}
	}
	return nil
}

// verifyCodes makes sure that codes are zero where full elements are marked and behind the last position.
func verifyCodes(codes, marks []uint64, length int) error {
	if endsBehind(codes, length) {
		return fmt.Errorf("%w: codes behind the last position", ErrCorrupt)
	}
	for i, w := range codes {
		if w&marks[i] != 0 {
			return fmt.Errorf("%w: position %d has a code and a full element", ErrCorrupt,
				64*i+bits.TrailingZeros64(w&marks[i]))
		}
	}
	return nil
}

// endsBehind tells whether a plane has a one behind its last position.
func endsBehind(plane []uint64, length int) bool {
	tail := length % 64
	return tail != 0 && plane[len(plane)-1]>>uint(tail) != 0
}

// eachBlock calls visit for every checksum block of the payload, from several goroutines.
func (s *Segment) eachBlock(count int, visit func(i int, block []byte) error) error {
	payload := s.data[HeaderBytes:s.payloadEnd]
	blocks := (len(payload) + ChecksumBlockBytes - 1) / ChecksumBlockBytes
	return workers.Each(count, blocks, func(_, i int) error {
		return visit(i, payload[i*ChecksumBlockBytes:min((i+1)*ChecksumBlockBytes, len(payload))])
	})
}
