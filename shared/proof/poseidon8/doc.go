// Package poseidon8 hashes eight inputs at a time with the 52-bit multiply-add of 512-bit vectors (AVX-512 IFMA), lane
// by lane the same Poseidon as package poseidon, which owns the constants and does the work where the processor lacks
// these instructions.
//
// A field element is five limbs of 52 bits in Montgomery form with R = 2^260, one vector per limb, one lane per hash.
// Since R is 28 times the modulus r and more, sums need no reduction for a long time: every value is kept below 16 r,
// which is below 2^260. Bounds, with r² < 0.03·r·R:
//
//	product of x and y:         below 0.03·x·y/r + r
//	dot product, twelve terms:  below 12·0.03·16 r + r < 7 r; its columns stay below 2^59
//	S-box of x < 10 r:          x², x⁴, x⁵ below 4 r, 1.5 r, 1.5 r; with the constant below 2.5 r
//	partial rounds:             each adds less than 1.1 r to the elements behind the first, which start below 2 r; after
//	                            every tenth they are multiplied by one, so they stay below 13 r
//
// [Trace] computes the same hashes with every value in between, for circuits. It keeps the library's Montgomery form,
// R' = 2^256, so that values leave without a multiplication: products take one factor 16 times, and constants of the
// linear layers are in the form above. Its bounds:
//
//	S-box: x < 16 r is reduced to x < r; x², x⁴, x⁵ below 0.46 r + r, reduced to below r, the constant then too
//	full rounds:    dot products below 12·0.03 r + r < 1.4 r
//	partial rounds: the elements behind the first stay below 1.4 r + 10·1.03 r < 12 r, dot products below 6 r
//
// The assembly is written by internal/asmgen.
package poseidon8

//go:generate go run ./internal/asmgen lanes_amd64.s
