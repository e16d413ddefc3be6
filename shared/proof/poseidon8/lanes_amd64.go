//go:build !purego

package poseidon8

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sys/cpu"
)

// supported says whether the kernels can run here.
func supported() bool { return cpu.X86.HasAVX512F && cpu.X86.HasAVX512IFMA }

// dot sets *dst = Σ state[k]·constants[k] for k < n; state and constants have at least n ≥ 1 elements behind them.
//
//go:noescape
func dot(dst, state *vec, constants *limbs, n int)

// mulAdd adds state[0]·constants[k−1] to state[k] for k = 1 … n, n ≥ 1.
//
//go:noescape
func mulAdd(state *vec, constants *limbs, n int)

// fifthPower sets state[k] = state[k]^5 + constants[k] for k < n, n ≥ 1.
//
//go:noescape
func fifthPower(state *vec, constants *limbs, n int)

// scale sets state[k] = state[k]·constant for k < n, n ≥ 1.
//
//go:noescape
func scale(state *vec, constant *limbs, n int)

// trace sets state[k] = state[k]^5 + constants[k] for k < n, n ≥ 1, and writes x, x², x⁴ and the result of every k, one
// after another and canonical, to dst[lane] in each lane, from offset bytes on. State and constants are in the
// library's Montgomery form, the state below 16 times the modulus before and canonical afterwards.
//
//go:noescape
func trace(dst *[lanes]*fr.Element, state *vec, constants *limbs, work *traceWork, offset, n int)
