// Package prover is the port behind which partitions are proved: a [Device] takes a synthesized partition and the
// circuit's parameters and gives a proof. The adapter here, [CPU], is plain Go on all cores; devices with an
// accelerator have their own packages. Package provertest is the suite that all of them pass.
//
//	Device.Start ─► Pending ─► Pending.Finish ─► proof that verifies
//
// Start does what belongs on the device: the quotient polynomial and the sums in G1 (spec c2-formats.md 3.6). When it
// returns, the evaluations a and b of the source are not needed any more; its assignment is, until Finish returns.
// Finish does the sum in G2, assembles the proof, parses its bytes back and verifies it against the source's own
// inputs: no proof leaves a device unverified (invariant 4). Several proofs may be pending at once, so that Finish of
// one can go on beside Start of the next.
package prover
