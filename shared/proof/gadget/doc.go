// Package gadget holds the gadgets that Filecoin circuits are made of: SHA-256, Poseidon, packing, Merkle inclusion
// (spec c2-circuit.md 2.5 to 3.5). Each is written once, as a walk over an r1cs.System; what the walk is for
// (structure, values or both) is the system's business.
//
// The values of Poseidon hashes whose inputs are known may be computed ahead, eight side by side ([Lookahead]). That
// replaces no gadget: which row takes which value is recorded from the walk itself.
//
// Order of allocation and of constraints is part of every gadget's contract and is checked by the constraint-system
// hashes of spec 6.3.
package gadget
