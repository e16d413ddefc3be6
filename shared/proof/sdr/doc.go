// Package sdr is the vanilla side of Filecoin's stacked DRG proof of replication: everything a sector's proof is about
// that can be computed without a circuit. It owns sector sizes and registered proofs with their partitions, challenges
// and tree shapes; circuit identifiers and parameter file names; prover, porep and replica ids; challenges of all three
// proof families; DRG and expander parents; labels; tree hashes; and the public inputs that follow from all this
// (spec/c2-circuit.md 3.4, 5, 6.4, 7; spec/c2-formats.md 1.5, 1.7, 2.1 to 2.3).
//
// Conventions: 32-byte values are little-endian, canonical field elements where they are field elements; nodes,
// challenges and partitions count from 0, layers from 1; a graph's parents are the 6 DRG parents followed by the 8
// expander parents.
//
// The package reads no files and keeps no state. Values that come from outside (names, miner ids, commitments) are
// checked and refused with errors; a partition or node out of range is the caller's broken invariant and panics.
package sdr
