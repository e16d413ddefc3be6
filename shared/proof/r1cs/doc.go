// Package r1cs is the constraint system that circuits are described in: spec c2-circuit.md sections 1 and 2.1 to 2.6.
//
// A [System] is walked by gadget code exactly once per use, and every use walks the same code. What comes out depends
// on the two ends that are plugged in:
//
//   - a [RowSink] receives every constraint as three linear combinations (digest, counts, densities, parameter
//     generation, satisfaction check);
//   - a [Values] receives every variable's value and every constraint's a and b evaluation, as small codes for the
//     98.5 % that are bits and as field elements for the rest (proving).
//
// Either end may be nil. Without a RowSink no linear combination is built at all: bit gates then work on whole machine
// words.
//
// A bit gate is described once, by its constraint row (see gate.go): the row's linear forms give the combinations, and
// the value of its output and the codes of a and b follow from the same row by solving it for its output.
//
// A walk that is taken many times with values computed elsewhere can be recorded once as a [Pattern], which says what
// each variable and row takes from a list of values; replaying it hands over the same as the walk.
//
// The package owns numbering: inputs and auxiliaries are numbered separately by order of allocation, input 0 is ONE.
// The kind of every value (bit code or full element) is decided by the circuit alone, never by the witness, so all
// totals of a circuit are constants.
//
// It does not know any particular circuit, file or curve point. It reads no clock and opens no file.
package r1cs
