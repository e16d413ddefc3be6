package main

// cut splits four words into limbs.
func (a *asm) cut(w, l []string) {
	a.op("VPANDQ %s, %s, %s", regMask, w[0], l[0])
	for i := 1; i < words; i++ {
		a.op("VPSHRDQ $%d, %s, %s, %s", radix-12*(i-1), w[i], w[i-1], l[i])
		a.op("VPANDQ %s, %s, %s", regMask, l[i], l[i])
	}
	a.op("VPSRLQ $16, %s, %s", w[3], l[4])
}

// join makes four words of limbs below r.
func (a *asm) join(l, w []string) {
	for i := range words {
		a.op("VPSLLQ $%d, %s, %s", radix-12*i, l[i+1], w[i])
		if i == 0 {
			a.op("VPORQ %s, %s, %s", l[0], w[0], w[0])
			continue
		}
		a.op("VPSRLQ $%d, %s, %s", 12*i, l[i], regSpare)
		a.op("VPORQ %s, %s, %s", regSpare, w[i], w[i])
	}
}

// finish reduces limbs fully and joins them.
func (a *asm) finish(l, scratch, w []string) {
	a.reduce(l)
	a.canonical(l, scratch)
	a.join(l, w)
}

// loadColumns reads eight neighbouring elements of each row into a block. The order of the lanes is 0 2 1 3 4 6 5 7.
func (a *asm) loadColumns() {
	a.text("loadColumns", "dst, src *uint64, rows, stride int", "dst", "DI", "src", "SI", "rows", "CX", "stride", "R8")
	a.broadcast("misc", miscMask, regMask)
	in, mixed, w, l := zs(0, 4), zs(4, 4), zs(8, 4), zs(12, limbs)
	a.label("loop")
	a.load(in, "SI", 0)
	for i := range 2 {
		a.op("VPUNPCKLQDQ %s, %s, %s", in[2*i+1], in[2*i], mixed[2*i])
		a.op("VPUNPCKHQDQ %s, %s, %s", in[2*i+1], in[2*i], mixed[2*i+1])
	}
	for i := range 2 {
		a.op("VSHUFI64X2 $0x88, %s, %s, %s", mixed[2+i], mixed[i], w[i])
		a.op("VSHUFI64X2 $0xdd, %s, %s, %s", mixed[2+i], mixed[i], w[2+i])
	}
	a.cut(w, l)
	a.store(l, "DI", 0)
	a.op("ADDQ $%d, DI", blockBytes)
	a.op("ADDQ R8, SI")
	a.op("DECQ CX")
	a.op("JNZ loop")
	a.end()
}

// storeColumns is loadColumns backwards, for blocks of numbers below 35 r.
func (a *asm) storeColumns() {
	a.text("storeColumns", "dst, src *uint64, rows, stride int", "dst", "DI", "src", "SI", "rows", "CX", "stride", "R8")
	a.broadcast("misc", miscMask, regMask)
	a.op("VMOVDQU64 low<>+0(SB), Z20")
	a.op("VMOVDQU64 high<>+0(SB), Z21")
	l, scratch, w, mixed := zs(0, limbs), zs(5, limbs), zs(10, 4), zs(14, 4)
	a.label("loop")
	a.load(l, "SI", 0)
	a.finish(l, scratch, w)
	for i := range 2 {
		a.op("VMOVDQA64 %s, %s", w[i], mixed[i])
		a.op("VPERMT2Q %s, Z20, %s", w[2+i], mixed[i])
		a.op("VMOVDQA64 %s, %s", w[i], mixed[2+i])
		a.op("VPERMT2Q %s, Z21, %s", w[2+i], mixed[2+i])
	}
	for i := range 2 {
		a.op("VPUNPCKLQDQ %s, %s, %s", mixed[2*i+1], mixed[2*i], w[2*i])
		a.op("VPUNPCKHQDQ %s, %s, %s", mixed[2*i+1], mixed[2*i], w[2*i+1])
	}
	a.store(w, "DI", 0)
	a.op("ADDQ $%d, SI", blockBytes)
	a.op("ADDQ R8, DI")
	a.op("DECQ CX")
	a.op("JNZ loop")
	a.end()
}

// rowAddress gives register names for eight rows: base plus 0, 1, 2, 3 strides, and the same from the fifth row on.
func rowAddress(i int) string {
	return []string{
		"(SI)", "(SI)(R8*1)", "(SI)(R8*2)", "(SI)(R9*1)",
		"(R10)", "(R10)(R8*1)", "(R10)(R8*2)", "(R10)(R9*1)",
	}[i]
}

// lanes4 transposes the 128-bit lanes of four registers into four others.
func (a *asm) lanes4(in, mixed, out []string) {
	for i := range 2 {
		a.op("VSHUFI64X2 $0x44, %s, %s, %s", in[2*i+1], in[2*i], mixed[2*i])
		a.op("VSHUFI64X2 $0xee, %s, %s, %s", in[2*i+1], in[2*i], mixed[2*i+1])
	}
	for i := range 2 {
		a.op("VSHUFI64X2 $0x88, %s, %s, %s", mixed[2+i], mixed[i], out[2*i])
		a.op("VSHUFI64X2 $0xdd, %s, %s, %s", mixed[2+i], mixed[i], out[2*i+1])
	}
}

const rowsParams = "tile, memory *uint64, pairs, stride int"

func (a *asm) rowsText(name string) {
	a.text(name, rowsParams, "tile", "DI", "memory", "SI", "pairs", "CX", "stride", "R8")
	a.broadcast("misc", miscMask, regMask)
	a.op("LEAQ (R8)(R8*2), R9")
	a.op("LEAQ (SI)(R8*4), R10")
}

func (a *asm) rowsEnd() {
	a.op("ADDQ $%d, DI", 2*blockBytes)
	a.op("ADDQ $64, SI")
	a.op("ADDQ $64, R10")
	a.op("DECQ CX")
	a.op("JNZ loop")
	a.end()
}

// loadRows reads two neighbouring elements of each of eight rows into two blocks; lane i is row i.
func (a *asm) loadRows() {
	a.rowsText("loadRows")
	low, high := zs(8, 4), zs(12, 4)
	a.label("loop")
	for i := range 4 {
		a.op("VMOVDQU64 %s, Z0", rowAddress(2*i))
		a.op("VMOVDQU64 %s, Z1", rowAddress(2*i+1))
		a.op("VPUNPCKLQDQ Z1, Z0, %s", low[i])
		a.op("VPUNPCKHQDQ Z1, Z0, %s", high[i])
	}
	even, odd := zs(0, 4), zs(4, 4) // words 0 and 2, 1 and 3, of the first element, then of the second
	a.lanes4(low, zs(16, 4), even)  // e0w0 e0w2 e1w0 e1w2
	a.lanes4(high, zs(16, 4), odd)  // e0w1 e0w3 e1w1 e1w3
	for e := range 2 {
		l := zs(8, limbs)
		a.cut([]string{even[2*e], odd[2*e], even[2*e+1], odd[2*e+1]}, l)
		a.store(l, "DI", e*blockBytes)
	}
	a.rowsEnd()
}

// storeRows is loadRows backwards, for blocks of numbers below 35 r.
func (a *asm) storeRows() {
	a.rowsText("storeRows")
	a.label("loop")
	even, odd := zs(10, 4), zs(14, 4)
	for e := range 2 {
		l, scratch := zs(0, limbs), zs(5, limbs)
		a.load(l, "DI", e*blockBytes)
		a.finish(l, scratch, []string{even[2*e], odd[2*e], even[2*e+1], odd[2*e+1]})
	}
	low, high := zs(0, 4), zs(4, 4)
	a.lanes4(even, zs(18, 4), low)
	a.lanes4(odd, zs(18, 4), high)
	for i := range 4 {
		a.op("VPUNPCKLQDQ %s, %s, Z8", high[i], low[i])
		a.op("VPUNPCKHQDQ %s, %s, Z9", high[i], low[i])
		a.op("VMOVDQU64 Z8, %s", rowAddress(2*i))
		a.op("VMOVDQU64 Z9, %s", rowAddress(2*i+1))
	}
	a.rowsEnd()
}
