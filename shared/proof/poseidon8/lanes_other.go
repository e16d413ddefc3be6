//go:build !amd64 || purego

package poseidon8

import "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

// supported says that there are no kernels for this platform.
func supported() bool { return false }

func dot(_, _ *vec, _ *limbs, _ int)     { panic("poseidon8: no vector kernels") }
func mulAdd(_ *vec, _ *limbs, _ int)     { panic("poseidon8: no vector kernels") }
func fifthPower(_ *vec, _ *limbs, _ int) { panic("poseidon8: no vector kernels") }
func scale(_ *vec, _ *limbs, _ int)      { panic("poseidon8: no vector kernels") }
func trace(_ *[lanes]*fr.Element, _ *vec, _ *limbs, _ *traceWork, _, _ int) {
	panic("poseidon8: no vector kernels")
}
