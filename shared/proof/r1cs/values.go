package r1cs

import "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

// Values receives what a walk computes, in order of allocation (variables) and of constraints (rows). c is not among
// it: on a satisfied system c = a·b.
//
// Small a evaluations are codes of two bits: a0 + 2·a1, where 3 stands for −1. Small b evaluations are bits.
type Values interface {
	// SmallRows appends n ≤ 64 rows; bit i of the planes belongs to the i-th of them. Bits from n on are zero.
	SmallRows(n int, a0, a1, b uint64)
	// FullRow appends a row with full a and full b.
	FullRow(a, b *fr.Element)
	// FullBitRow appends a row with full a and a b that is 0 or 1.
	FullBitRow(a *fr.Element, b uint64)
	// AuxBits appends n ≤ 64 auxiliaries with values 0 or 1. Bits from n on are zero.
	AuxBits(n int, bits uint64)
	// AuxFull appends an auxiliary that is a field element.
	AuxFull(v *fr.Element)
	// Input appends an input.
	Input(v *fr.Element)
}
