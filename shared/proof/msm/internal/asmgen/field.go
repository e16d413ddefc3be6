package main

import "fmt"

// product is a factor pair of a Montgomery product: x in registers, row j of y in memory.
type product struct {
	x   []string
	y   string // pointer register
	row string // register for the row
}

// montgomery leaves (sum of x y) / R, below (1 + 2^-16) p, in t[0..8), limbs not normalised; t has 9 registers and
// comes back rotated. modulus gives operand i of p: a register or a memory operand.
func (a *asm) montgomery(
	t []string, q, carry, inverse, mask string, bcst bool, modulus func(i int) string, f ...product,
) []string {
	for _, r := range t {
		a.op("VPXORQ %s, %s, %s", r, r, r)
	}
	suffix := ""
	if bcst {
		suffix = ".BCST"
	}
	for j := range limbs {
		for _, m := range f {
			a.op("VMOVDQU64 %d(%s), %s", 64*j, m.y, m.row)
			a.op("VPMADD52LUQ %s, %s, %s", m.x[0], m.row, t[0])
		}
		a.op("VPXORQ %s, %s, %s", q, q, q)
		a.op("VPMADD52LUQ %s, %s, %s", inverse, t[0], q)
		for _, m := range f {
			for i := 1; i < limbs; i++ {
				a.op("VPMADD52LUQ %s, %s, %s", m.x[i], m.row, t[i])
			}
		}
		// t[0] + low(q p[0]) is a multiple of 2^52: its carry is that of t[0] + 2^52 - 1.
		a.op("VPADDQ %s, %s, %s", mask, t[0], carry)
		a.op("VPSRLQ $%d, %s, %s", radix, carry, carry)
		a.op("VPADDQ %s, %s, %s", carry, t[1], t[1])
		for _, m := range f {
			for i := range limbs {
				a.op("VPMADD52HUQ %s, %s, %s", m.x[i], m.row, t[i+1])
			}
		}
		for i := 1; i < limbs; i++ {
			a.op("VPMADD52LUQ%s %s, %s, %s", suffix, modulus(i), q, t[i])
		}
		for i := range limbs {
			a.op("VPMADD52HUQ%s %s, %s, %s", suffix, modulus(i), q, t[i+1])
		}
		if j < limbs-1 {
			a.op("VPXORQ %s, %s, %s", t[0], t[0], t[0])
		}
		t = append(append([]string{}, t[1:]...), t[0])
	}
	return t
}

// normalise carries; signed for limbs that may be negative while their number is not.
func (a *asm) normalise(t []string, carry, mask string, signed bool) {
	shift := "VPSRLQ"
	if signed {
		shift = "VPSRAQ"
	}
	for i := range limbs - 1 {
		a.op("%s $%d, %s, %s", shift, radix, t[i], carry)
		a.op("VPANDQ %s, %s, %s", mask, t[i], t[i])
		a.op("VPADDQ %s, %s, %s", carry, t[i+1], t[i+1])
	}
}

// reduceSigned brings a number above -keepOffset p and below 2p to 0..1.0002 p. The quotient is estimated from the
// top limb, never too high; the multiple of p to add is looked up.
func (a *asm) reduceSigned(t []string, q, tmp, mask string) {
	a.op("VPSRAQ $%d, %s, %s", radix, t[limbs-2], tmp)
	a.op("VPADDQ %s, %s, %s", t[limbs-1], tmp, tmp)
	a.op("VPADDQ.BCST misc<>+24(SB), %s, %s", tmp, tmp)
	a.op("VPXORQ %s, %s, %s", q, q, q)
	a.op("VPMADD52HUQ.BCST misc<>+16(SB), %s, %s", tmp, q)
	for i := range limbs {
		a.op("VPERMQ multiples<>+%d(SB), %s, %s", 64*i, q, tmp)
		a.op("VPADDQ %s, %s, %s", tmp, t[i], t[i])
	}
	a.normalise(t, tmp, mask, true)
}

// Registers of the products of one factor pair.
var (
	factor  = zs(0, 8)
	acc     = zs(8, 9)
	modRegs = zs(20, 8)
)

const (
	regQ, regCarry, regRow, regInverse, regMask = "Z17", "Z18", "Z19", "Z28", "Z29"
)

func (a *asm) mulSetup() {
	for i, r := range modRegs {
		a.broadcast("modulus", i, r)
	}
	a.broadcast("misc", 0, regInverse)
	a.broadcast("misc", 1, regMask)
}

func (a *asm) mulBody() []string {
	a.load(factor, "SI")
	return a.montgomery(acc, regQ, regCarry, regInverse, regMask, false,
		func(i int) string { return modRegs[i] }, product{factor, "DX", regRow})
}

func (a *asm) mul() {
	a.text("func mulVec(dst, a, b *uint64, n, stride, bStride int)", "mulVec", 48)
	a.args("dst", "DI", "a", "SI", "b", "DX", "n", "CX", "stride", "R8", "bStride", "R9")
	a.mulSetup()
	a.label("loop")
	t := a.mulBody()
	a.normalise(t[:limbs], regCarry, regMask, false)
	a.store(t[:limbs], "DI")
	a.loopEnd("loop", "CX", "DI", "R8", "SI", "R8", "DX", "R9")
}

// fetch fetches the lines of the next two points of a list.
func (a *asm) fetch(base, list string, shift, lines int) {
	for i := range 2 {
		a.op("MOVL %d(%s), AX", 4*i, list)
		a.op("ANDL $0x7fffffff, AX")
		a.op("SHLQ $%d, AX", shift)
		for l := range lines {
			a.op("PREFETCHT0 %d(%s)(AX*1)", 64*l, base)
		}
	}
}

// mulFetch is mul that fetches both lines of two G1 points of each list while it works on a block.
func (a *asm) mulFetch() {
	a.text("func mulFetchVec(dst, a, b *uint64, n, stride int, dPoints *uint64, d *uint32, sPoints *uint64, s *uint32)",
		"mulFetchVec", 72)
	a.args("dst", "DI", "a", "SI", "b", "DX", "n", "CX", "stride", "R8", "dPoints", "R10", "d", "R11", "sPoints", "R12",
		"s", "R13")
	a.mulSetup()
	a.label("loop")
	a.fetch("R10", "R11", 7, 2)
	a.fetch("R12", "R13", 7, 2)
	t := a.mulBody()
	a.normalise(t[:limbs], regCarry, regMask, false)
	a.store(t[:limbs], "DI")
	a.loopEnd("loop", "CX", "DI", "R8", "SI", "R8", "DX", "R8", "R11", "$8", "R13", "$8")
}

func (a *asm) subtract(t []string, ptr string) {
	for i := range limbs {
		a.op("VPSUBQ %d(%s), %s, %s", 64*i, ptr, t[i], t[i])
	}
}

func (a *asm) mulSub() {
	a.text("func mulSubVec(dst, a, b, c *uint64, n int)", "mulSubVec", 40)
	a.args("dst", "DI", "a", "SI", "b", "DX", "c", "BX", "n", "CX")
	a.mulSetup()
	a.label("loop")
	t := a.mulBody()
	a.subtract(t, "BX")
	a.reduceSigned(t, regQ, regCarry, regMask)
	a.store(t[:limbs], "DI")
	step := fmt.Sprintf("$%d", blockSize)
	a.loopEnd("loop", "CX", "DI", step, "SI", step, "DX", step, "BX", step)
}

// sqrSub squares with each mixed product taken once: 16 accumulators, doubled before the squares are added.
func (a *asm) sqrSub() {
	a.text("func sqrSubVec(dst, a, c *uint64, n int)", "sqrSubVec", 32)
	a.args("dst", "DI", "a", "SI", "c", "BX", "n", "CX")
	const inverse, mask, q, carry = "Z28", "Z29", "Z30", "Z31"
	a.broadcast("misc", 0, inverse)
	a.broadcast("misc", 1, mask)
	x, t := zs(0, 8), zs(8, 16)
	a.label("loop")
	a.load(x, "SI")
	for _, r := range t {
		a.op("VPXORQ %s, %s, %s", r, r, r)
	}
	for i := range limbs {
		for j := i + 1; j < limbs; j++ {
			a.op("VPMADD52LUQ %s, %s, %s", x[i], x[j], t[i+j])
			a.op("VPMADD52HUQ %s, %s, %s", x[i], x[j], t[i+j+1])
		}
	}
	for i := 1; i < 2*limbs-1; i++ {
		a.op("VPADDQ %s, %s, %s", t[i], t[i], t[i])
	}
	for i := range limbs {
		a.op("VPMADD52LUQ %s, %s, %s", x[i], x[i], t[2*i])
		a.op("VPMADD52HUQ %s, %s, %s", x[i], x[i], t[2*i+1])
	}
	for i, r := range x { // x is not needed any more
		a.broadcast("modulus", i, r)
	}
	for j := range limbs {
		a.op("VPXORQ %s, %s, %s", q, q, q)
		a.op("VPMADD52LUQ %s, %s, %s", inverse, t[j], q)
		a.op("VPADDQ %s, %s, %s", mask, t[j], carry)
		a.op("VPSRLQ $%d, %s, %s", radix, carry, carry)
		a.op("VPADDQ %s, %s, %s", carry, t[j+1], t[j+1])
		for i := range limbs {
			if i > 0 {
				a.op("VPMADD52LUQ %s, %s, %s", x[i], q, t[j+i])
			}
			a.op("VPMADD52HUQ %s, %s, %s", x[i], q, t[j+i+1])
		}
	}
	high := t[limbs:]
	a.subtract(high, "BX")
	a.reduceSigned(high, q, carry, mask)
	a.store(high, "DI")
	step := fmt.Sprintf("$%d", blockSize)
	a.loopEnd("loop", "CX", "DI", step, "SI", step, "BX", step)
}

// mulE2 multiplies in Fp2 = Fp[u]/(u^2+1): dst0 = a0 b0 + a1 n1 with n1 = -b1, dst1 = a0 b1 + a1 b0, each with one
// reduction. Without sub, G2 points are fetched on the way, as in mulFetch. With it, c is subtracted and the result
// brought down for keeping.
func (a *asm) mulE2(sub bool) {
	name := "mulE2Vec"
	params := "dst0, dst1, a0, a1, b0, b1, n1 *uint64, n, stride int, " +
		"dPoints *uint64, d *uint32, sPoints *uint64, s *uint32"
	argBytes := 104
	if sub {
		name, params = "mulE2SubVec", "dst0, dst1, a0, a1, b0, b1, n1, c0, c1 *uint64, n int"
		argBytes = 80
	}
	a.text(fmt.Sprintf("func %s(%s)", name, params), name, argBytes)
	args := []string{"dst0", "DI", "dst1", "R10", "a0", "SI", "a1", "R11", "b0", "DX", "b1", "R12", "n1", "R13"}
	if sub {
		args = append(args, "c0", "BX", "c1", "R8", "n", "CX")
	} else {
		args = append(args, "n", "CX", "stride", "R8", "dPoints", "R14", "d", "BX", "sPoints", "R14", "s", "R15")
	}
	a.args(args...)
	const q, carry, row0, row1, inverse, mask = "Z25", "Z26", "Z27", "Z28", "Z29", "Z30"
	a.broadcast("misc", 0, inverse)
	a.broadcast("misc", 1, mask)
	x0, x1, t := zs(0, 8), zs(8, 8), zs(16, 9)
	modulus := func(i int) string { return fmt.Sprintf("modulus<>+%d(SB)", 8*i) }
	a.label("loop")
	a.load(x0, "SI")
	a.load(x1, "R11")
	if !sub {
		a.arg("dPoints", 9, "R14")
		a.fetch("R14", "BX", 8, 4)
		a.arg("sPoints", 11, "R14")
		a.fetch("R14", "R15", 8, 4)
	}
	for half, ys := range [][2]string{{"DX", "R13"}, {"R12", "DX"}} {
		r := a.montgomery(t, q, carry, inverse, mask, true, modulus, product{x0, ys[0], row0}, product{x1, ys[1], row1})
		if sub {
			a.subtract(r, []string{"BX", "R8"}[half])
			a.reduceSigned(r, q, carry, mask)
		} else {
			a.normalise(r[:limbs], carry, mask, false)
		}
		a.store(r[:limbs], []string{"DI", "R10"}[half])
	}
	step := fmt.Sprintf("$%d", blockSize)
	if sub {
		a.loopEnd("loop", "CX", "DI", step, "R10", step, "SI", step, "R11", step, "DX", step, "R12", step, "R13", step,
			"BX", step, "R8", step)
		return
	}
	a.loopEnd("loop", "CX", "DI", "R8", "R10", "R8", "SI", "R8", "R11", "R8", "DX", "R8", "R12", "R8", "R13", "R8",
		"BX", "$8", "R15", "$8")
}

// addSub writes addVec, dst = a + b, and subVec, dst = a - b + subOffset p; both normalised, not reduced.
func (a *asm) addSub() {
	step := fmt.Sprintf("$%d", blockSize)
	for _, name := range []string{"add", "sub"} {
		a.text(fmt.Sprintf("func %sVec(dst, a, b *uint64, n, aStride int)", name), name+"Vec", 40)
		a.args("dst", "DI", "a", "SI", "b", "DX", "n", "CX", "aStride", "R8")
		a.broadcast("misc", 1, regMask)
		t := zs(0, 8)
		a.label("loop")
		a.load(t, "SI")
		for i, r := range t {
			if name == "add" {
				a.op("VPADDQ %d(DX), %s, %s", 64*i, r, r)
				continue
			}
			a.op("VPADDQ.BCST offset<>+%d(SB), %s, %s", 8*i, r, r)
			a.op("VPSUBQ %d(DX), %s, %s", 64*i, r, r)
		}
		a.normalise(t, regCarry, regMask, name == "sub")
		a.store(t, "DI")
		a.loopEnd("loop", "CX", "DI", step, "SI", "R8", "DX", step)
	}
}

// neg writes negVec, dst = negOffset p - a, normalised, not reduced.
func (a *asm) neg() {
	step := fmt.Sprintf("$%d", blockSize)
	a.text("func negVec(dst, a *uint64, n int)", "negVec", 24)
	a.args("dst", "DI", "a", "SI", "n", "CX")
	a.broadcast("misc", 1, regMask)
	t := zs(0, 8)
	for i := range t {
		a.broadcast("negation", i, z(20+i))
	}
	a.label("loop")
	for i, r := range t {
		a.op("VPSUBQ %d(SI), %s, %s", 64*i, z(20+i), r)
	}
	a.normalise(t, regCarry, regMask, true)
	a.store(t, "DI")
	a.loopEnd("loop", "CX", "DI", step, "SI", step)
}
