package compact

import (
	"encoding/binary"
	"hash/crc32"
)

// Planes of rows and auxiliaries by name, for tests that change one bit.
func (s *Segment) Planes() map[string][]uint64 {
	return map[string][]uint64{
		"a0": s.rowPlane(planeA0), "a1": s.rowPlane(planeA1), "b0": s.rowPlane(planeB0),
		"full a": s.rowPlane(planeAFull), "full b": s.rowPlane(planeBFull),
		"x0": s.auxPlane(planeX0), "full x": s.auxPlane(planeXFull),
	}
}

// FullA and FullB are views of the lists of full elements.
var (
	FullA = func(s *Segment) [][4]uint64 { return view[[4]uint64](s, s.fullA) }
	FullB = func(s *Segment) [][4]uint64 { return view[[4]uint64](s, s.fullB) }
)

// Reseal makes all checksums right again after a change, as someone with intent would.
func Reseal(memory []byte) {
	if len(memory) < HeaderBytes {
		return
	}
	binary.LittleEndian.PutUint32(memory[offHeaderCRC:], crc32.Checksum(memory[:offHeaderCRC], castagnoli))
	s, err := Open(memory)
	if err != nil {
		return
	}
	_ = s.fillChecksums(1) // it cannot fail
}
