package main

import "fmt"

// Registers that all products share.
var modulus = zs(20, limbs)

const (
	regQ, regCarry      = "Z25", "Z26"
	regInverse, regMask = "Z27", "Z28"
	regRow, regSpare    = "Z29", "Z30"
)

// setup loads what products need.
func (a *asm) setup() {
	for i, r := range modulus {
		a.broadcast("modulus", i, r)
	}
	a.broadcast("misc", miscInverse, regInverse)
	a.broadcast("misc", miscMask, regMask)
}

// montgomery leaves x y / R in t[0..5), limbs not normalised; t has 6 registers and comes back rotated. Limb j of y is
// row(j), a register or a memory operand, the latter with the suffix.
func (a *asm) montgomery(x, t []string, suffix string, row func(j int) string) []string {
	for _, r := range t {
		a.op("VPXORQ %s, %s, %s", r, r, r)
	}
	for j := range limbs {
		y := row(j)
		if suffix == "" {
			a.op("VMOVDQU64 %s, %s", y, regRow)
		} else {
			a.op("VPBROADCASTQ %s, %s", y, regRow)
		}
		a.op("VPMADD52LUQ %s, %s, %s", x[0], regRow, t[0])
		a.op("VPXORQ %s, %s, %s", regQ, regQ, regQ)
		a.op("VPMADD52LUQ %s, %s, %s", regInverse, t[0], regQ)
		for i := 1; i < limbs; i++ {
			a.op("VPMADD52LUQ %s, %s, %s", x[i], regRow, t[i])
		}
		// t[0] + low(q r[0]) is a multiple of 2^52: its carry is that of t[0] + 2^52 - 1.
		a.op("VPADDQ %s, %s, %s", regMask, t[0], regCarry)
		a.op("VPSRLQ $%d, %s, %s", radix, regCarry, regCarry)
		a.op("VPADDQ %s, %s, %s", regCarry, t[1], t[1])
		for i := range limbs {
			a.op("VPMADD52HUQ %s, %s, %s", x[i], regRow, t[i+1])
		}
		for i := 1; i < limbs; i++ {
			a.op("VPMADD52LUQ %s, %s, %s", modulus[i], regQ, t[i])
		}
		for i := range limbs {
			a.op("VPMADD52HUQ %s, %s, %s", modulus[i], regQ, t[i+1])
		}
		if j < limbs-1 {
			a.op("VPXORQ %s, %s, %s", t[0], t[0], t[0])
		}
		t = append(append([]string{}, t[1:]...), t[0])
	}
	return t
}

// normalise carries; signed for limbs that may be negative while their number is not.
func (a *asm) normalise(t []string, signed bool) {
	shift := "VPSRLQ"
	if signed {
		shift = "VPSRAQ"
	}
	for i := range limbs - 1 {
		a.op("%s $%d, %s, %s", shift, radix, t[i], regCarry)
		a.op("VPANDQ %s, %s, %s", regMask, t[i], t[i])
		a.op("VPADDQ %s, %s, %s", regCarry, t[i+1], t[i+1])
	}
}

// reduce brings a normalised number below 35 r under 1.0001 r: the quotient is estimated from the top limb, never too
// high, and so many times 2^260 - r are added modulo 2^260.
func (a *asm) reduce(t []string) {
	a.op("VPXORQ %s, %s, %s", regQ, regQ, regQ)
	a.op("VPMADD52HUQ.BCST misc<>+%d(SB), %s, %s", 8*miscEstimate, t[limbs-1], regQ)
	a.op("VPSRLQ $%d, %s, %s", estimateShift, regQ, regQ)
	for i := range limbs {
		a.op("VPMADD52LUQ.BCST complement<>+%d(SB), %s, %s", 8*i, regQ, t[i])
		if i+1 < limbs {
			a.op("VPMADD52HUQ.BCST complement<>+%d(SB), %s, %s", 8*i, regQ, t[i+1])
		}
	}
	a.normalise(t, false)
	a.op("VPANDQ %s, %s, %s", regMask, t[limbs-1], t[limbs-1])
}

// canonical brings a normalised number below 2 r under r, with five registers of scratch.
func (a *asm) canonical(t, scratch []string) {
	for i := range limbs {
		a.op("VPADDQ.BCST complement<>+%d(SB), %s, %s", 8*i, t[i], scratch[i])
	}
	a.normalise(scratch, false)
	a.op("VPSRLQ $%d, %s, %s", radix, scratch[limbs-1], regCarry)
	a.op("VPTESTMQ %s, %s, K1", regCarry, regCarry) // lanes where the number was r or more
	a.op("VPANDQ %s, %s, %s", regMask, scratch[limbs-1], scratch[limbs-1])
	for i := range limbs {
		a.op("VMOVDQA64 %s, K1, %s", scratch[i], t[i])
	}
}

// stageLoop runs body for half pairs of blocks of each node: DI points to the upper block, R9 to the lower one, DX to
// the node's twiddle.
func (a *asm) stageLoop(broadcast bool, body func()) {
	step := blockBytes
	if broadcast {
		step = 8 * limbs
	}
	a.op("MOVQ R8, AX")
	a.op("IMULQ $%d, AX", blockBytes) // bytes of half a node
	a.label("node")
	a.op("LEAQ (DI)(AX*1), R9")
	a.op("MOVQ R8, BX")
	a.label("pair")
	body()
	a.op("ADDQ $%d, DI", blockBytes)
	a.op("ADDQ $%d, R9", blockBytes)
	a.op("DECQ BX")
	a.op("JNZ pair")
	a.op("ADDQ AX, DI")
	a.op("ADDQ $%d, DX", step)
	a.op("DECQ CX")
	a.op("JNZ node")
	a.end()
}

const stageParams = "v, twiddles *uint64, nodes, half int"

func (a *asm) stageText(name string) {
	a.text(name, stageParams, "v", "DI", "twiddles", "DX", "nodes", "CX", "half", "R8")
	a.setup()
}

// twiddle gives the suffix and the operands of a node's twiddle.
func twiddle(broadcast bool) (string, func(int) string) {
	if broadcast {
		return ".BCST", func(j int) string { return fmt.Sprintf("%d(DX)", 8*j) }
	}
	return "", func(j int) string { return fmt.Sprintf("%d(DX)", 64*j) }
}

func suffixOf(broadcast bool) string {
	if broadcast {
		return "Same"
	}
	return "Lanes"
}

// forward writes one stage of (a, b) -> (a + w b, a - w b).
func (a *asm) forward(broadcast bool) {
	a.stageText("forward" + suffixOf(broadcast))
	suffix, row := twiddle(broadcast)
	x, t, u := zs(0, limbs), zs(5, limbs+1), zs(11, limbs)
	a.stageLoop(broadcast, func() {
		a.load(x, "R9", 0)
		t := a.montgomery(x, t, suffix, row)[:limbs]
		a.load(u, "DI", 0)
		for i := range limbs {
			a.op("VPADDQ.BCST times2<>+%d(SB), %s, %s", 8*i, u[i], x[i])
			a.op("VPADDQ %s, %s, %s", t[i], u[i], u[i])
			a.op("VPSUBQ %s, %s, %s", t[i], x[i], x[i])
		}
		a.normalise(u, false)
		a.store(u, "DI", 0)
		a.normalise(x, true)
		a.store(x, "R9", 0)
	})
}

// inverse writes one stage of (a, b) -> (a + b, (a - b + k r) w); the last of four brings the sum down.
func (a *asm) inverse(broadcast bool, k int) {
	a.stageText(fmt.Sprintf("inverse%d%s", k, suffixOf(broadcast)))
	suffix, row := twiddle(broadcast)
	x, t, u := zs(0, limbs), zs(5, limbs+1), zs(11, limbs)
	a.stageLoop(broadcast, func() {
		a.load(u, "DI", 0)
		a.load(t[:limbs], "R9", 0)
		for i := range limbs {
			a.op("VPADDQ.BCST times%d<>+%d(SB), %s, %s", k, 8*i, u[i], x[i])
			a.op("VPADDQ %s, %s, %s", t[i], u[i], u[i])
			a.op("VPSUBQ %s, %s, %s", t[i], x[i], x[i])
		}
		a.normalise(u, false)
		if k == 16 {
			a.reduce(u)
		}
		a.store(u, "DI", 0)
		a.normalise(x, true)
		r := a.montgomery(x, t, suffix, row)[:limbs]
		a.normalise(r, false)
		a.store(r, "R9", 0)
	})
}

// mulLanes writes dst[i] = lanes scalars[i], canonical: one block times n numbers.
func (a *asm) mulLanes() {
	a.text("mulLanes", "dst, lanes, scalars *uint64, n int", "dst", "DI", "lanes", "SI", "scalars", "DX", "n", "CX")
	a.setup()
	x, t, scratch := zs(0, limbs), zs(5, limbs+1), zs(11, limbs)
	a.load(x, "SI", 0)
	suffix, row := twiddle(true)
	a.label("loop")
	r := a.montgomery(x, t, suffix, row)[:limbs]
	a.normalise(r, false)
	a.canonical(r, scratch)
	a.store(r, "DI", 0)
	a.op("ADDQ $%d, DI", blockBytes)
	a.op("ADDQ $%d, DX", 8*limbs)
	a.op("DECQ CX")
	a.op("JNZ loop")
	a.end()
}
