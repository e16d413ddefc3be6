// Package groth16test lets tests fix the random scalars of a proof, so that its bytes are known, and has circuits of
// some rows with everything that proving them takes. Only test files and test packages may import it: a test over the
// whole workspace checks that, and Blinding panics outside of test programs.
package groth16test
