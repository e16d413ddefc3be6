// Command asmgen writes the AVX-512 IFMA arithmetic of package ntt: ifma_amd64.s in the working directory.
//
// Eight field elements make a block of 40 words: 5 limbs of 52 bits, limb by limb, so that a vector register holds one
// limb of all eight. In memory outside of tiles an element is gnark-crypto's: a 2^256 mod r in four words. Products are
// Montgomery's with R = 2^260, so a factor kept as w 2^260 mod r (a twiddle) leaves the other's form as it is.
//
// Bounds, in units of r; 35 r fits 260 bits and r / 2^260 < 0.0284. Twiddles are below 1. A product of x < 35 and a
// twiddle is below 35 * 0.0284 + 1 < 2.
//
//   - forward stages: a + t and a - t + 2 with t < 2 add at most 2 each: 16 stages from 1 on stay below 35;
//   - inverse stages: a + b and (a - b + K) w, where K bounds b: with K = 2, 4, 8, 16 in turn sums double up to 32;
//     the fourth stage brings them below 1.0001 again.
package main
