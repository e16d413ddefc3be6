package srs

import (
	"encoding/binary"
	"fmt"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
)

// sectionCount is the number of point lists behind the key.
const sectionCount = 5

// sectionNames are the point lists in the order of the file (spec c2-formats.md 3.4).
var sectionNames = [sectionCount]string{"h", "l", "a", "b_g1", "b_g2"}

// layout is a parsed `.params` file: the key and where the sections lie.
type layout struct {
	key      *VerifyingKey
	counts   Counts
	sections [sectionCount]Section
}

// parseLayout reads the structure of a whole `.params` file. It touches the key and the five counts only, allocates
// nothing but the key, and requires that the file ends with the last point.
func parseLayout(data []byte) (*layout, error) {
	key, at, err := parseKeyHead(data)
	if err != nil {
		return nil, err
	}
	l := &layout{key: key}
	var counts [sectionCount]int
	for i, name := range sectionNames {
		size := G1Bytes
		if name == "b_g2" {
			size = G2Bytes
		}
		rest := data[at:]
		if len(rest) < countBytes {
			return nil, fmt.Errorf("parse parameters: %d bytes, ends before the count of %s at byte %d: %w",
				len(data), name, at, ErrLength)
		}
		n := int64(binary.BigEndian.Uint32(rest))
		rest = rest[countBytes:]
		if n*int64(size) > int64(len(rest)) {
			return nil, fmt.Errorf("parse parameters: %d points of %s need %d bytes, the file has %d more: %w",
				n, name, n*int64(size), len(rest), ErrLength)
		}
		counts[i] = int(n)
		l.sections[i] = Section{name: name, data: rest[: n*int64(size) : n*int64(size)], size: size}
		at += countBytes + int(n)*size
	}
	if at != len(data) {
		return nil, fmt.Errorf("parse parameters: %d bytes after the last point: %w", len(data)-at, ErrLength)
	}
	return l, l.setCounts(counts)
}

// setCounts checks what holds for the counts of any circuit.
func (l *layout) setCounts(n [sectionCount]int) error {
	if n[0]&(n[0]+1) != 0 {
		return fmt.Errorf("parse parameters: h has %d points, one less than a power of two expected: %w",
			n[0], ErrLength)
	}
	if n[3] != n[4] {
		return fmt.Errorf("parse parameters: b_g1 has %d points but b_g2 has %d: %w", n[3], n[4], ErrLength)
	}
	l.counts = Counts{IC: len(l.key.IC), H: n[0], L: n[1], A: n[2], B: n[3]}
	return nil
}

// sampleMax bounds the number of points of a section that are checked fully when a file is opened.
const sampleMax = 64

// checkSample checks up to n points of every section fully, evenly spread from the first to the last.
func (l *layout) checkSample(n int) error {
	for i := range l.sections {
		s := &l.sections[i]
		total := s.Len()
		for k := range min(n, total) {
			at := k
			if total > n {
				at = int(int64(k) * int64(total-1) / int64(n-1))
			}
			if err := s.check(at); err != nil {
				return fmt.Errorf("check point %d of %s: %w", at, s.name, err)
			}
		}
	}
	return nil
}

// Section is one list of points inside a mapped file, encoded unless the file is an image. It is valid until its Params
// is closed.
type Section struct {
	name    string
	data    []byte
	size    int
	decoded bool // of an image
}

// Name is the list's name in the file format: h, l, a, b_g1 or b_g2.
func (s Section) Name() string { return s.name }

// Len is the number of points.
func (s Section) Len() int {
	if s.size == 0 {
		return 0
	}
	return len(s.data) / s.size
}

// Bytes are all points, G1Bytes or G2Bytes each, in the mapping itself: read-only, any write to them crashes.
func (s Section) Bytes() []byte { return s.data }

// Points are the points from..to-1; it panics when they are out of range, as slicing does.
func (s Section) Points(from, to int) []byte {
	return s.data[from*s.size : to*s.size : to*s.size]
}

// check decodes point i fully.
func (s Section) check(i int) error {
	b := s.Points(i, i+1)
	if s.size == G2Bytes {
		var p bls12381.G2Affine
		return decodeG2(b, &p)
	}
	var p bls12381.G1Affine
	return decodeG1(b, &p)
}
