// Package c1 reads what the first commit phase leaves (spec/c2-formats.md 1): the L1 JSON and the L2 envelope around
// it. It owns their Go form, the check of the vanilla proof that happens before any proving, and slices: one
// partition's part of a checked C1 output in a compact binary form (docs/formats.md, "Slice").
//
//	bytes ── Decode ──> Input ── Check ──> nil: every value is proved to belong to the sector ── EncodeSlice ──> slices
//
// Decode checks form: JSON, names, counts and ranges. Check checks meaning: canonical elements, replica id, challenges,
// parents, Merkle paths, column hashes, labels, encoding. A C1 output that passes both gives proofs that verify,
// whatever it says; both refuse with an *InputError that names partition, challenge and field.
//
// Limits: the text is read once through a window of 256 KiB and never held as a whole; what Decode keeps grows with
// what it has read and is bounded by the counts of the sector size. Nesting, keys and texts are
// bounded. Keys match exactly by case; unknown ones are skipped and reported as warnings, as many as warningsMax.
//
// The package reads no bincode (c2-formats.md 1.8) and writes no envelope.
package c1
