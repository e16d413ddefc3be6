package main

import "fmt"

// What the kernel trace keeps in its work memory: x and x² times 16, then the words of x, x², x⁴ and x⁵.
const (
	sixteenXAt  = 0
	sixteenX2At = vecBytes
	wordsAt     = 2 * vecBytes
	wordCount   = 4
	wordsBytes  = wordCount * 64
)

// trace: for k < n, state[k] = state[k]^5 + constants[k], and the canonical words of x, x², x⁴ and the result go to
// every lane's list, from offset on.
//
// Values are in Montgomery form with R' = 2^256. A product divides by 2^260, so one of its factors is taken 16 times.
func (w *writer) trace() {
	fmt.Fprint(w, "TEXT ·trace(SB), NOSPLIT, $0-48\n")
	for i, arg := range []string{"dst", "state", "constants", "work", "offset", "n"} {
		w.op("MOVQ %s+%d(FP), %s", arg, 8*i, [...]string{"DI", "SI", "BX", "DX", "R10", "CX"}[i])
	}
	w.broadcastModulus()
	w.loop("traceNext", func() {
		for i := range limbs {
			w.op("VMOVDQU64 %d(SI), %s", 64*i, column(limbs+i))
		}
		w.reduceFully()
		w.keepWords(0)
		w.takeFactor()
		w.keepSixteenfold(sixteenXAt)
		w.multiply(sixteenXAt)
		w.normalize()
		w.subtractModulus()
		w.keepWords(1)
		w.takeFactor()
		w.keepSixteenfold(sixteenX2At)
		w.multiply(sixteenX2At)
		w.normalize()
		w.subtractModulus()
		w.keepWords(2)
		w.takeFactor()
		w.multiply(sixteenXAt)
		for i := range limbs {
			w.op("VPADDQ.BCST %d(BX), %[2]s, %[2]s", 8*i, column(limbs+i))
		}
		w.normalize()
		w.reduceFully()
		w.store("SI")
		w.keepWords(3)
		w.handOut(0)
		w.handOut(2)
		w.op("ADDQ $%d, SI", vecBytes)
		w.op("ADDQ $%d, BX", 8*limbs)
		w.op("ADDQ $%d, R10", 4*8*wordCount)
	})
	w.end()
}

// multiply puts Z0 … Z4 times a vector element in work memory into the columns 5 … 9, its limbs not yet normal.
func (w *writer) multiply(at int) {
	w.clear()
	w.accumulate(func(i int) string {
		w.op("VMOVDQU64 %d(DX), Z28", at+64*i)
		return "Z28"
	})
	w.reduce()
}

// takeFactor copies the result to Z0 … Z4.
func (w *writer) takeFactor() {
	for i := range limbs {
		w.op("VMOVDQA64 %s, Z%d", column(limbs+i), i)
	}
}

// keepSixteenfold writes 16 times Z0 … Z4, a value below the modulus, to work memory.
func (w *writer) keepSixteenfold(at int) {
	for i := range limbs {
		w.op("VPSLLQ $4, Z%d, Z28", i)
		if i > 0 {
			w.op("VPSRLQ $%d, Z%d, Z31", limbBits-4, i-1)
			w.op("VPORQ Z31, Z28, Z28")
		}
		w.op("VPANDQ Z26, Z28, Z28")
		w.op("VMOVDQU64 Z28, %d(DX)", at+64*i)
	}
}

// reduceFully makes a normal result below 16 times the modulus canonical: the quotient from the highest limbs is at
// most one short.
func (w *writer) reduceFully() {
	w.op("VPXORQ Z28, Z28, Z28")
	w.op("VPMADD52HUQ.BCST constants<>+%d(SB), %s, Z28", quotientAt, column(2*limbs-1))
	for i := range limbs {
		w.op("VPMADD52LUQ.BCST constants<>+%d(SB), Z28, %s", complementAt+8*i, column(limbs+i))
	}
	for i := range limbs - 1 {
		w.op("VPMADD52HUQ.BCST constants<>+%d(SB), Z28, %s", complementAt+8*i, column(limbs+i+1))
	}
	w.normalize()
	w.op("VPANDQ Z26, %[1]s, %[1]s", column(2*limbs-1))
	w.subtractModulus()
}

// subtractModulus subtracts the modulus from a normal result in the lanes where it is not below it.
func (w *writer) subtractModulus() {
	for i := range limbs {
		w.op("VPADDQ.BCST constants<>+%d(SB), %s, Z%d", complementAt+8*i, column(limbs+i), 8+i)
	}
	for i := range limbs - 1 {
		w.op("VPSRLQ $%d, Z%d, Z31", limbBits, 8+i)
		w.op("VPANDQ Z26, Z%[1]d, Z%[1]d", 8+i)
		w.op("VPADDQ Z31, Z%[1]d, Z%[1]d", 8+i+1)
	}
	w.op("VPCMPUQ $6, Z26, Z%d, K1", 8+limbs-1)
	for i := range limbs - 1 {
		w.op("VMOVDQA64 Z%d, K1, %s", 8+i, column(limbs+i))
	}
	w.op("VPANDQ Z26, Z%d, K1, %s", 8+limbs-1, column(2*limbs-1))
}

// keepWords joins the limbs of the result to four words and writes them to work memory.
func (w *writer) keepWords(value int) {
	for i := range wordCount {
		w.op("VPSLLQ $%d, %s, Z28", limbBits-12*i, column(limbs+i+1))
		if i == 0 {
			w.op("VPORQ %s, Z28, Z28", column(limbs))
		} else {
			w.op("VPSRLQ $%d, %s, Z31", 12*i, column(limbs+i))
			w.op("VPORQ Z31, Z28, Z28")
		}
		w.op("VMOVDQU64 Z28, %d(DX)", wordsAt+value*wordsBytes+64*i)
	}
}

// handOut turns the words of two values, lanes side by side, into eight lists of two elements and appends them to the
// lanes' lists.
func (w *writer) handOut(value int) {
	for i := range 2 * wordCount {
		w.op("VMOVDQU64 %d(DX), Z%d", wordsAt+value*wordsBytes+64*i, 8+i)
	}
	// Pairs of words: even lanes in Z0 … Z3, odd lanes in Z16 … Z19.
	for i := range wordCount {
		w.op("VPUNPCKLQDQ Z%d, Z%d, Z%d", 8+2*i+1, 8+2*i, i)
		w.op("VPUNPCKHQDQ Z%d, Z%d, Z%d", 8+2*i+1, 8+2*i, 16+i)
	}
	for odd, base := range []int{0, 16} {
		for half := range 2 { // first or second value: lanes 0 and 4, then 2 and 6
			w.op("VSHUFI64X2 $0x88, Z%d, Z%d, Z%d", base+2*half+1, base+2*half, 8+half)
			w.op("VSHUFI64X2 $0xdd, Z%d, Z%d, Z%d", base+2*half+1, base+2*half, 10+half)
		}
		for i := range 2 {
			for k, pick := range []string{"0x88", "0xdd"} {
				lane := 2*i + 4*k + odd
				w.op("VSHUFI64X2 $%s, Z%d, Z%d, Z12", pick, 8+2*i+1, 8+2*i)
				w.op("MOVQ %d(DI), R9", 8*lane)
				w.op("VMOVDQU64 Z12, %d(R9)(R10*1)", 8*wordCount*value)
			}
		}
	}
}
