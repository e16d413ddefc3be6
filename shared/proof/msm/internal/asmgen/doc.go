// Command asmgen writes the AVX-512 IFMA arithmetic of package msm: ifma_amd64.s in the working directory.
//
// A field element is 8 limbs of 52 bits in Montgomery form with R = 2^416. Eight elements make a block of 64 words,
// limb by limb, so that a vector register holds one limb of all of them. Elements need not be below p: with 35 spare
// bits the product of numbers below 2^390 stays below (1 + 2^-16) p, so sums and differences go without reduction;
// only what is kept, the coordinates of points, is brought below 1.0002 p again (see reduceSigned).
package main
