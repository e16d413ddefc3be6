package ntt

import (
	"sync"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/klauspost/cpuid/v2"
)

const (
	limbCount    = 5
	limbMask     = 1<<52 - 1
	elementBytes = 32
	blockWords   = limbCount * lanes
)

// vectorSupported reports whether the CPU and the system have the instructions of the vector kernel.
var vectorSupported = sync.OnceValue(func() bool {
	return cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512DQ, cpuid.AVX512IFMA, cpuid.AVX512VBMI2)
})

// vectorKernel is the kernel on eight lanes of AVX-512 IFMA.
type vectorKernel struct {
	domain *Domain
	tile   []uint64                // 2^passStagesMax blocks
	same   [passStagesMax][]uint64 // twiddles of each stage of the prepared node, limbs
	lanes  []uint64                // twiddles of one stage of eight nodes, blocks
	base   [2][]uint64             // the domain's base in limbs
	shift  fr.Element              // 2^4: from the library's form to that of twiddles

	prepared struct {
		valid   bool
		node    uint32
		depth   int
		inverse bool
	}
}

func newVectorKernel(d *Domain) kernel {
	k := &vectorKernel{domain: d, tile: newBlocks(1 << passStagesMax), lanes: newBlocks(1 << (passStagesMax - 1))}
	k.shift.SetUint64(16)
	for i := range k.base {
		k.base[i] = k.limbs(nil, d.base[i])
	}
	return k
}

// newBlocks gives n blocks on a cache line boundary.
func newBlocks(n int) []uint64 {
	const line = 64
	b := make([]uint64, n*blockWords+line/8)
	skip := (line - int(uintptr(unsafe.Pointer(&b[0]))%line)) % line / 8
	return b[skip : skip+n*blockWords : skip+n*blockWords]
}

// limbs appends elements in the form of twiddles: w 2^260 mod r, five limbs each.
func (k *vectorKernel) limbs(dst []uint64, elements []fr.Element) []uint64 {
	for i := range elements {
		e := k.twiddleForm(&elements[i])
		dst = append(dst, e[:]...)
	}
	return dst
}

func (k *vectorKernel) twiddleForm(e *fr.Element) [limbCount]uint64 {
	var w fr.Element
	w.Mul(e, &k.shift)
	return [limbCount]uint64{
		w[0] & limbMask,
		(w[0]>>52 | w[1]<<12) & limbMask,
		(w[1]>>40 | w[2]<<24) & limbMask,
		(w[2]>>28 | w[3]<<36) & limbMask,
		w[3] >> 16,
	}
}

func (k *vectorKernel) prepare(p pass, n uint32, inverse bool) {
	was := &k.prepared
	if was.valid && was.node == n && was.depth == p.depth && was.inverse == inverse {
		return
	}
	var stage [1 << (passStagesMax - 1)]fr.Element
	base := k.domain.base[0]
	if inverse {
		base = k.domain.base[1]
	}
	for u := range p.stages {
		k.domain.roots.stageTwiddles(stage[:1<<u], base, n, inverse)
		k.same[u] = k.limbs(k.same[u][:0], stage[:1<<u])
	}
	was.valid, was.node, was.depth, was.inverse = true, n, p.depth, inverse
}

func (k *vectorKernel) columns(p pass, x fr.Vector, first, width int, inverse bool) {
	rows := 1 << p.stages
	stride := len(x) >> p.stages
	for at := first; at < first+width; at += lanes {
		memory := &x[at][0]
		loadColumns(&k.tile[0], memory, rows, stride*elementBytes)
		for i := range p.stages {
			u := i
			if inverse {
				u = p.stages - 1 - i
			}
			stageSame(i, inverse)(&k.tile[0], &k.same[u][0], 1<<u, rows>>(u+1))
		}
		storeColumns(memory, &k.tile[0], rows, stride*elementBytes)
	}
}

func (k *vectorKernel) rows(p pass, x fr.Vector, n uint32, inverse bool) {
	size := 1 << p.stages
	memory := &x[0][0]
	loadRows(&k.tile[0], memory, size/2, size*elementBytes)
	for i := range p.stages {
		u := i
		if inverse {
			u = p.stages - 1 - i
		}
		k.laneTwiddles(u, n, inverse)
		stageLanes(i, inverse)(&k.tile[0], &k.lanes[0], 1<<u, size>>(u+1))
	}
	storeRows(&k.tile[0], memory, size/2, size*elementBytes)
}

// laneTwiddles makes the twiddles of stage u of eight nodes: lane l of block i is T[(n + l) 2^u + i].
func (k *vectorKernel) laneTwiddles(u int, n uint32, inverse bool) {
	var heads [blockWords]uint64
	for l := range uint32(lanes) {
		head := k.domain.roots.twiddle((n+l)<<u, inverse)
		for i, w := range k.twiddleForm(&head) {
			heads[i*lanes+int(l)] = w
		}
	}
	base := k.base[0]
	if inverse {
		base = k.base[1]
	}
	mulLanes(&k.lanes[0], &heads[0], &base[0], 1<<u)
}

type stageFunc func(v, twiddles *uint64, nodes, half int)

// stageSame is the i-th stage of a pass in which all lanes belong to one node.
func stageSame(i int, inverse bool) stageFunc {
	if !inverse {
		return forwardSame
	}
	return [...]stageFunc{inverse2Same, inverse4Same, inverse8Same, inverse16Same}[i%4]
}

// stageLanes is the i-th stage of a pass in which each lane is a node.
func stageLanes(i int, inverse bool) stageFunc {
	if !inverse {
		return forwardLanes
	}
	return [...]stageFunc{inverse2Lanes, inverse4Lanes, inverse8Lanes, inverse16Lanes}[i%4]
}
