// Package groth16 proves and verifies with Groth16 over BLS12-381 by bellperson's conventions (spec c2-formats.md
// section 3): proof encoding, verifier, batch verifier, and the prover's arithmetic.
//
// # Verifying
//
// [ParseProof] takes nothing but 192 bytes of three compressed points that are canonical, on the curve, in the
// prime-order subgroup and not the identity; each way to miss that has its own error. [Prepare] turns a verifying key
// into a [PreparedKey], which verifies single proofs and batches. A failed batch is verified proof by proof, so that
// its error names the bad ones.
//
// # Proving
//
// A [Prover] belongs to one circuit's parameters. [Prover.Start] takes a partition's bit-native vectors, computes the
// quotient polynomial and the sums in G1; [Pending.Finish] adds the sum in G2 and assembles the proof, which is not yet
// verified: package prover does that before it hands a proof out.
//
//	h = (ifft(a b) - negacyclic ifft(a' b')) / 2
//
// is the quotient of A B - C by x^m - 1, where c = a b on the domain and a', b' are the values on the domain's odd
// coset, the roots of x^m + 1: with P = A B, P mod (x^m - 1) is low + high half of P and P mod (x^m + 1) is low - high,
// so that h is the high half. c is never stored: two vectors of domain length are all that is needed, and six
// transforms instead of the seven of spec 3.6, with the same h.
//
// Because c is taken as a b, h does not tell whether the circuit's constraints hold; verification does.
//
// # Randomness
//
// r and s come from crypto/rand. Tests fix them with package groth16test; nothing else can.
//
// The package opens no file and reads no clock; who wants timings uses [WithObserver].
package groth16
