// Package poseidon is the Poseidon hash that Filecoin's Merkle trees and columns use: x^5, BLS12-381 scalar field,
// eight full rounds, Standard strength, MerkleTree domain tag (spec/c2-circuit.md 2.8, 2.9). It owns the constants,
// derived from their definitions when first used, and the fast native hash; the circuit gadget takes the same
// constants from Params.
//
// Vectors are row vectors throughout: u·Q means (u·Q)_j = Σ_i u_i·Q[i][j]. The sparse and the pre-sparse matrices are
// not symmetric, so this convention matters.
//
// Supported arities are 2, 4, 8 and 11. Any other number of inputs is a broken invariant of the caller and panics: the
// number of inputs never comes from outside.
package poseidon
