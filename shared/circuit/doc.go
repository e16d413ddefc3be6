// Package circuit is the seam between proofs and the machinery that proves them: what a circuit is to a synthesizer, a
// parameter generator or a prover, and the registry of those that exist. Nothing here knows any particular circuit.
package circuit
