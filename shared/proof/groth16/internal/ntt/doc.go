// Package ntt transforms polynomials over the scalar field of BLS12-381 between coefficients in natural order and
// values in bit-reversed order, in place, on the two domains that a Groth16 quotient needs: the roots of x^m - 1
// ([Cyclic]) and those of x^m + 1 ([Negacyclic]).
//
// # Method
//
// A node (depth s, index j) stands for a polynomial modulo x^M - c with M = 2^(k-s). With w = T[n] a square root of c,
//
//	modulo x^M - w^2  ->  modulo x^(M/2) - w  and  modulo x^(M/2) + w:   (a, b) -> (a + w b, a - w b)
//
// goes down to values; backwards it is (a, b) -> (a + b, (a - b) / w), which leaves a factor m. All nodes of both
// domains share one sequence of twiddles: n is j on the cyclic domain and 2^s + j on the negacyclic one, which is the
// second half of the cyclic domain of twice the size, and T[n] is the 2^32-th root of unity to half of n's 32 bits
// reversed. So the coset costs no multiplication, each node has one twiddle, and T[N 2^u + i] = T[N 2^u] T[i] keeps
// the tables small.
//
// # Passes
//
// k stages are cut into passes of up to 9. A pass over columns copies neighbouring columns of a node's grid into a
// tile, the pass over rows (the last stages) eight neighbouring nodes; a tile fits the second level of cache and goes
// through all stages of its pass there. A transform of 2^27 elements reads and writes memory three times.
//
// # Arithmetic
//
// Two kernels give the same results: portable (gnark-crypto's arithmetic, any CPU), and eight lanes of AVX-512 IFMA
// with lazy reduction (see internal/asmgen).
package ntt
