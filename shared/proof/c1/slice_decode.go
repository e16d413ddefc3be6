package c1

import (
	"bytes"
	"encoding/binary"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/crypto/blake2b"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// DecodeSlice reads what EncodeSlice wrote. It demands exactly the length that the circuit named in the header has,
// before it allocates anything, then the digest, canonical elements and node numbers in range. Its refusals wrap
// ErrSlice. The slice keeps no reference to data.
func DecodeSlice(data []byte) (*Slice, error) {
	r := &sliceReader{rest: data}
	s, layout, err := r.header(len(data))
	if err != nil {
		return nil, err
	}
	covered := data[:len(data)-sliceDigestBytes]
	if digest := blake2b.Sum256(covered); !bytes.Equal(digest[:], data[len(covered):]) {
		return nil, sliceError("digest differs")
	}
	r.arities = s.Size.TreeLevels()
	r.elements = make([]fr.Element, sliceSharedValues+layout.challenges*layout.challengeValues())
	paths := layout.dataPath + (sdr.Degree+2)*len(r.arities)
	r.steps = make([]sdr.Step, layout.challenges*paths)

	for _, e := range []*fr.Element{&s.ReplicaID, &s.CommD, &s.CommR, &s.CommRLast, &s.CommC} {
		*e = r.values(1)[0]
	}
	s.Challenges = make([]SliceChallenge, layout.challenges)
	for i := range s.Challenges {
		r.challenge(&s.Challenges[i], layout)
	}
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// sliceReader reads a slice whose length has been found right; the first value out of range sticks as err.
type sliceReader struct {
	rest     []byte
	arities  []int
	elements []fr.Element
	steps    []sdr.Step
	read     int
	err      error
}

func (r *sliceReader) take(n int) []byte {
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

func (r *sliceReader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }

// header reads the header and compares its numbers and the total length with those of the circuit.
func (r *sliceReader) header(total int) (*Slice, sliceLayout, error) {
	refuse := func(format string, args ...any) (*Slice, sliceLayout, error) {
		return nil, sliceLayout{}, sliceError(format, args...)
	}
	if total < sliceHeaderBytes {
		return refuse("%d bytes, shorter than a header", total)
	}
	if magic := r.take(len(sliceMagic)); string(magic) != sliceMagic {
		return refuse("no slice: it starts with %x", magic)
	}
	if version := r.u32(); version != sliceVersion {
		return refuse("version %d, want %d", version, sliceVersion)
	}
	id := r.take(circuitIDBytes)
	for _, size := range sdr.PublishedSizes() {
		var want [circuitIDBytes]byte
		copy(want[:], CircuitID(size))
		if !bytes.Equal(id, want[:]) {
			continue
		}
		layout := layoutOf(size)
		partition, challenges, layers, dataPath := r.u32(), r.u32(), r.u32(), r.u32()
		switch {
		case partition >= uint32(layout.partitionsMax):
			return refuse("partition %d, %s has at most %d", partition, CircuitID(size), layout.partitionsMax)
		case challenges != uint32(layout.challenges), layers != uint32(layout.layers),
			dataPath != uint32(layout.dataPath):
			return refuse("%d challenges, %d layers, %d levels of tree D, want %d, %d, %d for %s", challenges, layers,
				dataPath, layout.challenges, layout.layers, layout.dataPath, CircuitID(size))
		case total != layout.bytes():
			return refuse("%d bytes, want %d for %s", total, layout.bytes(), CircuitID(size))
		}
		return &Slice{Size: size, Partition: int(partition)}, layout, nil
	}
	return refuse("unknown circuit %s", quoted(string(bytes.TrimRight(id, "\x00"))))
}

// values reads n elements.
func (r *sliceReader) values(n int) []fr.Element {
	out := r.elements[:n:n]
	r.elements = r.elements[n:]
	for i := range out {
		e, err := fr.LittleEndian.Element((*[32]byte)(r.take(32)))
		if err != nil && r.err == nil {
			r.err = sliceError("value %d is %s", r.read, notCanonical)
		}
		out[i] = e
		r.read++
	}
	return out
}

// node checks a node number's range.
func (r *sliceReader) node(node, least uint64, l sliceLayout) uint64 {
	if r.err == nil && (node < least || node >= l.nodes) {
		r.err = sliceError("node %d is out of range", node)
	}
	return node
}

// path reads the siblings of a path; its indices are the digits of the node number.
func (r *sliceReader) path(node uint64, levels int, arityAt func(level int) int) []sdr.Step {
	path := r.steps[:levels:levels]
	r.steps = r.steps[levels:]
	for i := range path {
		arity := uint64(arityAt(i))
		path[i] = sdr.Step{Siblings: r.values(int(arity) - 1), Index: int(node % arity)}
		node /= arity
	}
	return path
}

func (r *sliceReader) treePath(node uint64) []sdr.Step {
	return r.path(node, len(r.arities), func(level int) int { return r.arities[level] })
}

func (r *sliceReader) challenge(c *SliceChallenge, l sliceLayout) {
	c.Challenge = r.node(binary.LittleEndian.Uint64(r.take(8)), 1, l)
	c.DataLeaf = r.values(1)[0]
	c.DataPath = r.path(c.Challenge, l.dataPath, func(int) int { return 2 })
	for i := range c.Parents {
		node := r.node(uint64(r.u32()), 0, l)
		c.Parents[i] = SliceColumn{Node: node, Rows: r.values(l.layers), Path: r.treePath(node)}
	}
	c.RLastPath = r.treePath(c.Challenge)
	c.CPath = r.treePath(c.Challenge)
}
