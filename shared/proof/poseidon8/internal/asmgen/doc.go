// Command asmgen writes the vector kernels of package poseidon8 as Go assembly.
//
// Register use: Z0 … Z4 hold one factor; Z8 … Z16 are the columns 0 … 8 of low halves, Z17 … Z25 the columns 1 … 9 of
// high halves; Z26 the limb mask, Z27 the inverse for reduction, Z28 the limb at hand, Z5 Z6 Z7 Z29 Z30 the modulus,
// Z31 spare.
package main
