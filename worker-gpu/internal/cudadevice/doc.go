// Package cudadevice is the port of package prover on the device library (module cuda): a GPU, or the host-compiled
// library in tests.
//
//	Find(path) ─► Open(UUID) ─► idle ─Start─► circuit loaded, proofs pending ─Start of another circuit─┐
//	                              ▲              (their sums are brought home first) ◄─────────────────┘
//	                            Close
//
// The arena is taken with the first circuit, as large as its plan says, which is what was booked; a circuit that needs
// more has it taken anew. Start has the device's transforms and sums in G1; Finish, beside the next Start, the sum in
// G2, and then blinds, assembles and verifies here. A proof whose place on the device is wanted for others has its sum
// in G2 computed early. What the device says it took is held against the plan after every proof.
//
// Parameters must be decoded (package residency); small ones that are not are decoded here, for the canary and tests.
// The package owns what is on the device. It does not decide which circuits are loaded, and starts no process.
package cudadevice
