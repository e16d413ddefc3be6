package c1

import (
	"runtime"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/internal/workers"
	"github.com/proofrack/proofrack/shared/proof/poseidon8"
)

// hashChunk is how many Poseidon hashes one worker takes at a time: a few passes of the batch, and short enough to keep
// all cores busy to the end.
const hashChunk = 32

// treePath is one path of tree C or R-last on its way up.
type treePath struct {
	// owner is the number of the challenge, column that of allColumns, −1 for the path in tree R-last.
	owner, column int
	proof         *MerkleProof
	elements      []PathElement
	// position is the number of the current node within its level, node its value.
	position uint64
	node     fr.Element
}

// checkColumnHashes compares the leaf of every column's path with the hash of its rows.
func (c *checker) checkColumnHashes() error {
	layers := c.shape.layers
	columns := make([]*ColumnProof, 0, c.count()*columnCount)
	for n := range c.count() {
		all := allColumns(c.proofAt(n))
		columns = append(columns, all[:]...)
	}
	var b batch
	hashes := b.run(layers, len(columns), func(i int, dst []fr.Element) uint64 {
		for k := range dst {
			dst[k] = element(&columns[i].Column.Rows[k])
		}
		return uint64(columns[i].Column.Index)
	})
	for i, column := range columns {
		if hashes[i] != element(&column.Inclusion.Leaf) {
			refusal := c.refuseAt(i/columnCount, columnField(i%columnCount)+".inclusion_proof")
			refusal.Field = c.merkleField(refusal.Field, false, "leaf")
			refusal.Reason = "not the hash of the column's rows"
			return refusal
		}
	}
	return nil
}

// checkTreePaths recomputes the roots of all paths in trees C and R-last, level by level.
func (c *checker) checkTreePaths() error {
	paths := c.treePaths()
	var b batch
	for level := range paths[0].elements {
		arity := len(paths[0].elements[level].Hashes) + 1
		hashes := b.run(arity, len(paths), func(i int, dst []fr.Element) uint64 {
			return paths[i].children(level, dst)
		})
		for i := range paths {
			paths[i].node = hashes[i]
			paths[i].position /= uint64(arity)
		}
	}
	for i := range paths {
		if p := &paths[i]; p.node != element(&p.proof.Root) {
			field := replicaField
			if p.column >= 0 {
				field = columnField(p.column) + ".inclusion_proof"
			}
			refusal := c.refuseAt(p.owner, field)
			refusal.Reason = "path does not lead from leaf to root"
			return refusal
		}
	}
	return nil
}

// treePaths lists the paths in the order of the challenges.
func (c *checker) treePaths() []treePath {
	paths := make([]treePath, 0, c.count()*(columnCount+1))
	add := func(owner, column int, m *MerkleProof) {
		paths = append(paths, treePath{
			owner: owner, column: column, proof: m, elements: m.Elements(), position: c.position(m, false),
			node: element(&m.Leaf),
		})
	}
	for n := range c.count() {
		p := c.proofAt(n)
		add(n, -1, &p.CommRLastProof)
		for i, column := range allColumns(p) {
			add(n, i, &column.Inclusion)
		}
	}
	return paths
}

// children writes the child list of the node above the current one and gives the key of that node.
func (p *treePath) children(level int, dst []fr.Element) uint64 {
	e := &p.elements[level]
	own := int(e.Index)
	dst[own] = p.node
	for j := range e.Hashes {
		at := j
		if j >= own {
			at++
		}
		dst[at] = element(&e.Hashes[j])
	}
	key := p.position / uint64(len(dst)) << 1
	if p.column < 0 {
		key |= 1
	}
	return key
}

func (c *checker) refuseAt(n int, field string) *InputError {
	partition, challenge := c.at(n)
	return &InputError{Partition: partition, Challenge: challenge, Field: field, Offset: -1}
}

// batch hashes many input lists side by side, each distinct one once: paths share the nodes near the root, and near the
// leaves where parents are close together. At 32 GiB this saves about half of the hashes. The buffers are reused.
type batch struct {
	inputs, distinct, hashes, results []fr.Element
	keys                              []uint64
	slots                             []int
	byKey                             map[uint64]int
}

// run gives the hash of count lists of that arity. fill writes list i and gives its key, from several goroutines; lists
// with different keys are taken to be different, lists with one key are compared. The result is valid until the next
// run.
func (b *batch) run(arity, count int, fill func(i int, dst []fr.Element) uint64) []fr.Element {
	b.inputs = grow(b.inputs, count*arity)
	b.keys = grow(b.keys, count)
	_ = workers.Each(runtime.GOMAXPROCS(0), count, func(_, i int) error { // no task fails
		b.keys[i] = fill(i, b.inputs[i*arity:(i+1)*arity])
		return nil
	})
	b.findDistinct(arity, count)

	distinct := len(b.distinct) / arity
	b.hashes = grow(b.hashes, distinct)
	_ = workers.Each(runtime.GOMAXPROCS(0), (distinct+hashChunk-1)/hashChunk, func(_, chunk int) error {
		from, to := chunk*hashChunk, min(distinct, (chunk+1)*hashChunk)
		poseidon8.HashMany(b.hashes[from:to], b.distinct[from*arity:to*arity], arity)
		return nil
	})
	b.results = grow(b.results, count)
	for i := range b.results {
		b.results[i] = b.hashes[b.slots[i]]
	}
	return b.results
}

// findDistinct gathers the distinct lists and notes for each list which of them it is. Two lists with one key that
// differ mean that one of their paths is wrong; both are kept, and the roots will tell.
func (b *batch) findDistinct(arity, count int) {
	if b.byKey == nil {
		b.byKey = make(map[uint64]int, count)
	}
	clear(b.byKey)
	b.slots = grow(b.slots, count)
	b.distinct = b.distinct[:0]
	for i := range count {
		list := b.inputs[i*arity : (i+1)*arity]
		slot, found := b.byKey[b.keys[i]]
		if !found || !slices.Equal(list, b.distinct[slot*arity:(slot+1)*arity]) {
			slot = len(b.distinct) / arity
			b.distinct = append(b.distinct, list...)
			b.byKey[b.keys[i]] = slot
		}
		b.slots[i] = slot
	}
}

// grow gives a slice of length n, reusing the given one if it is large enough.
func grow[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }
