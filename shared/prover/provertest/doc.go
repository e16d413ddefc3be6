// Package provertest is the conformance suite of the port in package prover. Each device's tests call [Run]. Only test
// files may import it.
package provertest
