package ntt

//go:generate go run ./internal/asmgen

// The functions below are described in internal/asmgen. Counts are at least 1; strides are in bytes; the twiddles of
// the functions that end in Same are numbers of five limbs, those of the others blocks.

//go:noescape
func forwardSame(v, twiddles *uint64, nodes, half int)

//go:noescape
func forwardLanes(v, twiddles *uint64, nodes, half int)

//go:noescape
func inverse2Same(v, twiddles *uint64, nodes, half int)

//go:noescape
func inverse4Same(v, twiddles *uint64, nodes, half int)

//go:noescape
func inverse8Same(v, twiddles *uint64, nodes, half int)

//go:noescape
func inverse16Same(v, twiddles *uint64, nodes, half int)

//go:noescape
func inverse2Lanes(v, twiddles *uint64, nodes, half int)

//go:noescape
func inverse4Lanes(v, twiddles *uint64, nodes, half int)

//go:noescape
func inverse8Lanes(v, twiddles *uint64, nodes, half int)

//go:noescape
func inverse16Lanes(v, twiddles *uint64, nodes, half int)

//go:noescape
func mulLanes(dst, lanes, scalars *uint64, n int)

//go:noescape
func loadColumns(dst, src *uint64, rows, stride int)

//go:noescape
func storeColumns(dst, src *uint64, rows, stride int)

//go:noescape
func loadRows(tile, memory *uint64, pairs, stride int)

//go:noescape
func storeRows(tile, memory *uint64, pairs, stride int)
