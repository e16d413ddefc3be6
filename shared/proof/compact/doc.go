// Package compact holds the bit-native vectors of one partition (design section 3): the a and b evaluations and the
// auxiliary assignment as small codes, with field elements only where the circuit says so. c is not stored: c = a·b.
//
// A [Segment] is one block of memory, given by the caller (heap, shared memory, a mapped file), in the format of
// docs/formats.md "Segment". Its size and every offset in it depend on the circuit alone, so sections of a circuit are
// written by several workers at once, each in order, each value once. Sealing adds the rank index and the checksums.
//
// Codes, per position: a is a0 + 2·a1 with 3 standing for −1, b and the assignment are one bit. Where the full plane
// has a one, the value is the next element of the vector's list of full elements (Montgomery form, four little-endian
// words), found at random by the rank index.
//
// Limits: it neither owns memory nor opens files, and it does not know who reads the segment.
package compact
