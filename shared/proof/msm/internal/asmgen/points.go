package main

import "fmt"

// rows loads the coordinates of the 8 points whose indices are at list: lane by lane, one register each.
func (a *asm) rows(regs []string, base, list string) {
	for i, r := range regs {
		a.op("MOVL %d(%s), AX", 4*i, list)
		a.op("ANDL $0x7fffffff, AX")
		a.op("SHLQ CX, AX")
		a.op("VMOVDQU64 (%s)(AX*1), %s", base, r)
	}
}

// prefetch fetches the x and y lines of the points some blocks ahead; half is half the size of a point.
func (a *asm) prefetch(base, list, half string) {
	for i := range 8 {
		a.op("MOVL %d(%s), AX", 4*(i+8*prefetchBlocks), list)
		a.op("ANDL $0x7fffffff, AX")
		a.op("SHLQ CX, AX")
		a.op("ADDQ %s, AX", base)
		a.op("PREFETCHT0 (AX)")
		a.op("PREFETCHT0 (AX)(%s*1)", half)
	}
}

// transpose turns 8 rows into 8 columns of words, using the 8 registers of u; the columns are returned in order, in
// the registers of r.
func (a *asm) transpose(r, u []string) []string {
	for i := 0; i < 8; i += 2 {
		a.op("VPUNPCKLQDQ %s, %s, %s", r[i+1], r[i], u[i])
		a.op("VPUNPCKHQDQ %s, %s, %s", r[i+1], r[i], u[i+1])
	}
	for odd := range 2 { // u of that parity holds, lane by lane, the columns of that parity
		v := []string{r[odd], r[odd+2], r[odd+4], r[odd+6]}
		a.op("VSHUFI64X2 $0x88, %s, %s, %s", u[odd+2], u[odd], v[0])
		a.op("VSHUFI64X2 $0x88, %s, %s, %s", u[odd+6], u[odd+4], v[1])
		a.op("VSHUFI64X2 $0xdd, %s, %s, %s", u[odd+2], u[odd], v[2])
		a.op("VSHUFI64X2 $0xdd, %s, %s, %s", u[odd+6], u[odd+4], v[3])
	}
	out := make([]string, 8)
	for odd := range 2 {
		v := []string{r[odd], r[odd+2], r[odd+4], r[odd+6]}
		w := []string{u[odd], u[odd+2], u[odd+4], u[odd+6]}
		a.op("VSHUFI64X2 $0x88, %s, %s, %s", v[1], v[0], w[0])
		a.op("VSHUFI64X2 $0x88, %s, %s, %s", v[3], v[2], w[1])
		a.op("VSHUFI64X2 $0xdd, %s, %s, %s", v[1], v[0], w[2])
		a.op("VSHUFI64X2 $0xdd, %s, %s, %s", v[3], v[2], w[3])
		for k, reg := range w {
			out[2*k+odd] = reg
		}
	}
	return out
}

// gather writes gatherX, which loads x1 of the targets and x2 of the sources and computes x2 - x1 and x1 + x2 (not
// normalised), and gatherY, which loads y1 and y2 and computes +-y2 - y1.
func (a *asm) gather() {
	step := fmt.Sprintf("$%d", blockSize)
	const half = "R13"
	for _, y := range []bool{false, true} {
		if y {
			a.text("func gatherY(diff, y1, dst *uint64, d *uint32, src *uint64, s *uint32, n, shift int)", "gatherY", 64)
			a.args("diff", "DI", "y1", "R8", "dst", "R9", "d", "R10", "src", "R11", "s", "R12", "n", "BX", "shift", "CX")
		} else {
			a.text("func gatherX(diff, x1, sum, dst *uint64, d *uint32, src *uint64, s *uint32, n, shift int)", "gatherX", 72)
			a.args("diff", "DI", "x1", "R8", "sum", "SI", "dst", "R9", "d", "R10", "src", "R11", "s", "R12", "n", "BX",
				"shift", "CX")
			a.op("MOVL $1, %s", half)
			a.op("SHLQ CX, %s", half)
			a.op("SHRQ $1, %s", half)
		}
		a.broadcast("misc", 1, "Z31")
		a.op("VPXORQ Z30, Z30, Z30")
		a.label("loop")
		if !y {
			a.prefetch("R9", "R10", half)
			a.prefetch("R11", "R12", half)
		}
		a.rows(zs(0, 8), "R9", "R10")
		p1 := a.transpose(zs(0, 8), zs(8, 8))
		a.store(p1, "R8")
		a.rows(zs(16, 8), "R11", "R12")
		p2 := a.transpose(zs(16, 8), zs(0, 8))
		if y {
			a.op("VMOVDQU32 (R12), Y29")
			a.op("VPMOVD2M Y29, K1")
			for _, r := range p2 {
				a.op("VPSUBQ %s, Z30, K1, %s", r, r)
			}
		} else {
			for i := range 8 {
				a.op("VPADDQ %s, %s, Z29", p1[i], p2[i])
				a.op("VMOVDQU64 Z29, %d(SI)", 64*i)
			}
		}
		for i := range 8 {
			a.op("VPADDQ.BCST offset<>+%d(SB), %s, %s", 8*i, p2[i], p2[i])
			a.op("VPSUBQ %s, %s, %s", p1[i], p2[i], p2[i])
		}
		a.normalise(p2, "Z29", "Z31", true)
		a.store(p2, "DI")
		steps := []string{"DI", step, "R8", step, "R10", "$32", "R12", "$32"}
		if !y {
			steps = append(steps, "SI", step)
		}
		a.loopEnd("loop", "BX", steps...)
	}
}

// scatter writes one coordinate of blocks of points to their places.
func (a *asm) scatter() {
	a.text("func scatterVec(dst *uint64, d *uint32, src *uint64, n, shift int)", "scatterVec", 40)
	a.args("dst", "R9", "d", "R10", "src", "SI", "n", "BX", "shift", "CX")
	a.label("loop")
	a.load(zs(0, 8), "SI")
	rows := a.transpose(zs(0, 8), zs(8, 8))
	for i, r := range rows {
		a.op("MOVL %d(R10), AX", 4*i)
		a.op("SHLQ CX, AX")
		a.op("VMOVDQU64 %s, (R9)(AX*1)", r)
	}
	a.loopEnd("loop", "BX", "SI", fmt.Sprintf("$%d", blockSize), "R10", "$32")
}

// fetchPoints fetches all lines of the points in a list; shift is at least 7.
func (a *asm) fetchPoints() {
	a.text("func fetchVec(points *uint64, s *uint32, n, shift int)", "fetchVec", 32)
	a.args("points", "SI", "s", "R10", "n", "BX", "shift", "CX")
	a.op("MOVL $1, R9")
	a.op("SHLQ CX, R9")
	a.label("loop")
	a.op("MOVL (R10), AX")
	a.op("ANDL $0x7fffffff, AX")
	a.op("SHLQ CX, AX")
	a.op("ADDQ SI, AX")
	a.op("LEAQ (AX)(R9*1), R8")
	a.label("line")
	a.op("PREFETCHT0 (AX)")
	a.op("ADDQ $64, AX")
	a.op("CMPQ AX, R8")
	a.op("JNE line")
	a.op("ADDQ $4, R10")
	a.op("DECQ BX")
	a.op("JNZ loop")
	a.op("RET")
}

// decode cuts big-endian coordinates into limbs and reports the lanes of any block that are not below p.
func (a *asm) decode() {
	a.text("func decodeVec(dst *uint64, src *byte, idx *int32, n, size int) (bad uint64)", "decodeVec", 48)
	a.args("dst", "DI", "src", "SI", "idx", "R10", "n", "BX", "size", "CX")
	a.op("MOVQ $0xffffffffffff, AX") // 48 bytes; the others are neither read nor set
	a.op("KMOVQ AX, K1")
	a.op("KXORQ K3, K3, K3")
	a.op("VMOVDQU64 cut<>(SB), Z31")
	a.op("VMOVDQU64 shift<>(SB), Z30")
	a.broadcast("misc", 1, "Z29")
	rows := zs(0, 8)
	a.label("loop")
	for i, r := range rows {
		a.op("MOVL %d(R10), AX", 4*i)
		a.op("IMULQ CX, AX")
		a.op("VMOVDQU8.Z (SI)(AX*1), K1, %s", r)
		a.op("VPERMB %s, Z31, %s", r, r)
		a.op("VPSRLVQ Z30, %s, %s", r, r)
		a.op("VPANDQ Z29, %s, %s", r, r)
	}
	v := a.transpose(rows, zs(8, 8))
	a.store(v, "DI")
	for i, r := range v { // v - p: negative at the top where v is below p
		if i > 0 {
			a.op("VPSRAQ $%d, Z28, Z28", radix)
			a.op("VPADDQ Z28, %s, %s", r, r)
		}
		a.op("VPSUBQ.BCST modulus<>+%d(SB), %s, Z28", 8*i, r)
	}
	a.op("VPMOVQ2M Z28, K2")
	a.op("KNOTB K2, K2")
	a.op("KORB K2, K3, K3")
	for _, s := range [][2]string{{"DI", fmt.Sprintf("$%d", blockSize)}, {"R10", "$32"}} {
		a.op("ADDQ %s, %s", s[1], s[0])
	}
	a.op("DECQ BX")
	a.op("JNZ loop")
	a.op("KMOVB K3, AX")
	a.op("MOVQ AX, bad+40(FP)")
	a.op("VZEROUPPER")
	a.op("RET")
}
