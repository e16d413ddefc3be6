// Package blinding holds the two random scalars of a Groth16 proof. It is internal so that only package groth16 and its
// test helper groth16test can choose them: a known r or s gives the witness away.
package blinding
