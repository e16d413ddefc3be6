// Package testsystem holds the constraint systems F1 to F27 and the finer ones of spec c2-circuit.md 6.3, with their
// totals and hashes: how anybody can see that this build has Filecoin's circuits, and where a mismatch begins if not.
package testsystem
