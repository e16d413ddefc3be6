package groth16test

import (
	"testing"

	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/groth16/internal/blinding"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// Blinding is an option that fixes r and s. It panics outside of test programs.
func Blinding(r, s uint64) groth16.Option {
	if !testing.Testing() {
		panic("groth16test: fixed blinding outside of a test")
	}
	return groth16.WithBlinding(blinding.Fixed(r1cs.Element(r), r1cs.Element(s)))
}
