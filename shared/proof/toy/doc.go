// Package toy is a circuit of 1,063 constraints for tests: the inclusion of a leaf in a Poseidon tree of 64 leaves
// (spec c2-circuit.md 6.3, F11). It takes milliseconds where the smallest real sector takes half a minute.
//
// Production builds cannot reach it: only test files and files with the build tag toy may import it, which tools/tidy
// checks.
package toy
