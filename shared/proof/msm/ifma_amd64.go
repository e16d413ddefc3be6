package msm

//go:generate go run ./internal/asmgen

// The functions below are described in internal/asmgen. n counts blocks and is at least 1; strides are in bytes;
// shift is the binary logarithm of the bytes of a point. Lists of indices have 8 entries for each block and 32 more
// that are only fetched ahead.

//go:noescape
func mulVec(dst, a, b *uint64, n, stride, bStride int)

// mulFetchVec is mulVec with one stride that also fetches the G1 points d[0..2n) of dPoints and s[0..2n) of sPoints.
//
//go:noescape
func mulFetchVec(dst, a, b *uint64, n, stride int, dPoints *uint64, d *uint32, sPoints *uint64, s *uint32)

//go:noescape
func mulSubVec(dst, a, b, c *uint64, n int)

//go:noescape
func sqrSubVec(dst, a, c *uint64, n int)

// mulE2Vec also fetches G2 points as mulFetchVec does G1 points.
//
//go:noescape
func mulE2Vec(dst0, dst1, a0, a1, b0, b1, n1 *uint64, n, stride int,
	dPoints *uint64, d *uint32, sPoints *uint64, s *uint32)

//go:noescape
func mulE2SubVec(dst0, dst1, a0, a1, b0, b1, n1, c0, c1 *uint64, n int)

//go:noescape
func addVec(dst, a, b *uint64, n, aStride int)

//go:noescape
func subVec(dst, a, b *uint64, n, aStride int)

//go:noescape
func negVec(dst, a *uint64, n int)

//go:noescape
func gatherX(diff, x1, sum, dst *uint64, d *uint32, src *uint64, s *uint32, n, shift int)

//go:noescape
func gatherY(diff, y1, dst *uint64, d *uint32, src *uint64, s *uint32, n, shift int)

//go:noescape
func scatterVec(dst *uint64, d *uint32, src *uint64, n, shift int)

// fetchVec fetches n points.
//
//go:noescape
func fetchVec(points *uint64, s *uint32, n, shift int)

//go:noescape
func decodeVec(dst *uint64, src *byte, idx *int32, n, size int) (bad uint64)
