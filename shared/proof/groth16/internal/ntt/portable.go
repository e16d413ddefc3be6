package ntt

import "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

// portableColumns is how many columns a tile has.
const portableColumns = 16

// portableKernel is the kernel on gnark-crypto's arithmetic.
type portableKernel struct {
	domain   *Domain
	twiddles [passStagesMax][]fr.Element // of each stage
	node     uint32
	prepared bool
	depth    int
	inverse  bool
	tile     fr.Vector
	product  fr.Vector
}

func (k *portableKernel) prepare(p pass, n uint32, inverse bool) {
	if k.prepared && k.node == n && k.depth == p.depth && k.inverse == inverse {
		return
	}
	base := k.domain.base[0]
	if inverse {
		base = k.domain.base[1]
	}
	for u := range p.stages {
		if len(k.twiddles[u]) == 0 {
			k.twiddles[u] = make([]fr.Element, 1<<u)
		}
		k.domain.roots.stageTwiddles(k.twiddles[u], base, n, inverse)
	}
	k.prepared, k.node, k.depth, k.inverse = true, n, p.depth, inverse
}

func (k *portableKernel) columns(p pass, x fr.Vector, first, width int, inverse bool) {
	stride := len(x) >> p.stages
	for done := 0; done < width; done += portableColumns {
		n := min(portableColumns, width-done)
		if len(k.tile) < n<<p.stages {
			k.tile = make(fr.Vector, n<<p.stages)
		}
		tile := k.tile[:n<<p.stages]
		for row := range 1 << p.stages {
			copy(tile[row*n:(row+1)*n], x[row*stride+first+done:])
		}
		k.stages(p, tile, inverse)
		for row := range 1 << p.stages {
			copy(x[row*stride+first+done:], tile[row*n:(row+1)*n])
		}
	}
}

func (k *portableKernel) rows(p pass, x fr.Vector, n uint32, inverse bool) {
	size := 1 << p.stages
	for i := 0; i < len(x); i += size {
		k.prepare(p, n+uint32(i/size), inverse)
		k.stages(p, x[i:i+size], inverse)
	}
}

// stages takes one node's elements through the stages of a pass.
func (k *portableKernel) stages(p pass, x fr.Vector, inverse bool) {
	for i := range p.stages {
		u := i
		if inverse {
			u = p.stages - 1 - i
		}
		half := len(x) >> (u + 1)
		for j := range k.twiddles[u] {
			a, b := x[2*j*half:(2*j+1)*half], x[(2*j+1)*half:(2*j+2)*half]
			if inverse {
				k.up(a, b, &k.twiddles[u][j])
			} else {
				k.down(a, b, &k.twiddles[u][j])
			}
		}
	}
}

// vectorMin is the length from which the library's vector operations pay.
const vectorMin = 16

func (k *portableKernel) scratch(n int) fr.Vector {
	if len(k.product) < n {
		k.product = make(fr.Vector, n)
	}
	return k.product[:n]
}

// down is (a, b) -> (a + w b, a - w b).
func (k *portableKernel) down(a, b fr.Vector, w *fr.Element) {
	if len(a) < vectorMin {
		for i := range a {
			b[i].Mul(&b[i], w)
			fr.Butterfly(&a[i], &b[i])
		}
		return
	}
	t := k.scratch(len(a))
	t.ScalarMul(b, w)
	b.Sub(a, t)
	a.Add(a, t)
}

// up is (a, b) -> (a + b, (a - b) w).
func (k *portableKernel) up(a, b fr.Vector, w *fr.Element) {
	if len(a) < vectorMin {
		for i := range a {
			fr.Butterfly(&a[i], &b[i])
			b[i].Mul(&b[i], w)
		}
		return
	}
	t := k.scratch(len(a))
	t.Sub(a, b)
	a.Add(a, b)
	b.ScalarMul(t, w)
}
