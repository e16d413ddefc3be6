// Package r1cstest records walks over an r1cs.System in full and holds their two ends against each other: what the
// rows say under the recorded assignment, and what was handed over as values. It stores field elements and combinations
// without any packing, so that tests can compare packed representations with it.
package r1cstest
