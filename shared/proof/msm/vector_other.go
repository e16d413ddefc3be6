//go:build !amd64

package msm

import bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"

// vectorSupported is false: there are vector kernels for amd64 only.
func vectorSupported() bool { return false }

func newVectorG1() kernel[bls12381.G1Affine] { panic("msm: no vector kernel for this architecture") }

func newVectorG2() kernel[bls12381.G2Affine] { panic("msm: no vector kernel for this architecture") }
