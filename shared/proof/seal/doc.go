// Package seal makes small sectors for tests and demonstrations: it really seals pseudo-random data, for every proof
// family, and gives the Commit-Phase-1 output. It computes tree D over the data, the labels of all layers, column
// hashes and tree C, the encoded replica and tree R-last, comm_r, the challenges and their vanilla proofs
// (spec/c2-circuit.md 3.3 to 3.6, 4.4, 5; spec/c2-formats.md 1.6).
//
// Everything is in memory, about 16 bytes per byte of the sector, which is why sectors above 16 MiB are refused: this
// is no sealer for production. The same request gives the same sector everywhere.
//
// ProveChallenge, which assembles a vanilla proof from paths and columns, serves package sparse too.
package seal
