package msm

// batchMax is the greatest number of additions that share one field inversion.
const batchMax = 1024

// negative marks an index whose point is to be subtracted; indices are below 2^31.
const negative = uint32(1) << 31

// store is an array of affine points in the form one kernel computes on. Its entries are never the identity: who
// owns a store knows which entries are set.
type store interface {
	// len is the number of entries.
	len() int
}

// kernel is the arithmetic of one worker on one group. It keeps scratch memory and is not safe for concurrent use,
// but several kernels may work on disjoint entries of one store.
type kernel[A any] interface {
	// newStore returns a store of n entries.
	newStore(n int) store
	// pointBytes is the memory of one entry of a store.
	pointBytes() int
	// load sets dst[at+k] to bases[idx[k]], none of which is the identity; at most batchMax at once.
	load(dst store, at int, bases Bases[A], idx []int32) error
	// assign sets dst[d] to src[s&^negative], negated if s has the mark.
	assign(dst store, d int, src store, s uint32)
	// add sets dst[d[k]] += src[s[k]&^negative] (subtracts where s[k] has the mark) for at most batchMax
	// distinct d. It returns the k whose sum is the identity; those entries of dst are then unset. The result
	// is valid until the next call. The entries in next are used soon; the kernel may fetch them.
	add(dst store, d []uint32, src store, s []uint32, next *pairs) []int
	// fetch tells that src[s[k]&^negative] will be read soon.
	fetch(src store, s []uint32)
	// affine returns src[i].
	affine(src store, i int) A
	// encode writes the uncompressed encodings of src[0..n) to out.
	encode(out []byte, src store, n int)
	// export writes src[0..n) to out.
	export(out []A, src store, n int)
}

// setOf is a store with a mark for each entry that holds a point; entries without one are the identity.
type setOf struct {
	store
	used []uint64
}

func newSet[A any](k kernel[A], n int) *setOf {
	return &setOf{store: k.newStore(n), used: make([]uint64, (n+63)/64)}
}

func (s *setOf) has(i uint32) bool { return s.used[i/64]>>(i%64)&1 != 0 }
func (s *setOf) set(i uint32)      { s.used[i/64] |= 1 << (i % 64) }
func (s *setOf) unset(i uint32)    { s.used[i/64] &^= 1 << (i % 64) }
func (s *setOf) clear()            { clear(s.used) }
