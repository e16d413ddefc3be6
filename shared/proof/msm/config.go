package msm

import (
	"errors"
	"fmt"
	"runtime"
)

// Sentinel errors; callers test with errors.Is.
var (
	// ErrLength reports bases, scalars, bitmaps or buffers whose lengths do not fit together.
	ErrLength = errors.New("lengths do not match")
	// ErrEncoding reports an encoded point that is not in canonical uncompressed form.
	ErrEncoding = errors.New("point encoding is not canonical")
	// ErrConfig reports a Config field out of its range.
	ErrConfig = errors.New("configuration out of range")
)

// Limits of Config.
const (
	// WorkersMax bounds Config.Workers.
	WorkersMax = 1024
	// WindowBitsMin and WindowBitsMax bound Config.WindowBits when it is not 0.
	WindowBitsMin = 2
	WindowBitsMax = 22
	// scalarCountDefault is the number of full scalars assumed when a stream gives no hint.
	scalarCountDefault = 1 << 20
	// bucketBytesDefault bounds the buckets of one accumulator when Config.BucketBytesMax is 0.
	bucketBytesDefault = 512 << 20
)

// Config tunes an accumulator or a fixed-base table. The zero value is ready to use.
type Config struct {
	// Workers is the number of goroutines that compute; 0 means GOMAXPROCS, at most WorkersMax.
	Workers int
	// ScalarCount is the expected number of full scalars (neither 0 nor 1) over the whole stream. It only
	// picks the window size, so a wrong guess costs time, never correctness. 0 means unknown.
	ScalarCount int
	// WindowBits fixes the window size in bits, WindowBitsMin..WindowBitsMax; 0 picks it from ScalarCount.
	WindowBits int
	// BucketBytesMax bounds the memory of the buckets, in bytes, when the window size is picked here; 0 means 512 MiB.
	BucketBytesMax int
	// Portable makes the accumulator use the portable arithmetic even where the vector one is available.
	// Both give the same results; tests and benchmarks compare them.
	Portable bool
}

// Validate reports every field that is out of range; the error wraps ErrConfig.
func (c Config) Validate() error {
	var errs []error
	if c.Workers < 0 || c.Workers > WorkersMax {
		errs = append(errs, fmt.Errorf("workers %d not in 0..%d: %w", c.Workers, WorkersMax, ErrConfig))
	}
	if c.ScalarCount < 0 {
		errs = append(errs, fmt.Errorf("scalar count %d is negative: %w", c.ScalarCount, ErrConfig))
	}
	if c.WindowBits != 0 && (c.WindowBits < WindowBitsMin || c.WindowBits > WindowBitsMax) {
		errs = append(errs, fmt.Errorf("window bits %d not in %d..%d: %w",
			c.WindowBits, WindowBitsMin, WindowBitsMax, ErrConfig))
	}
	if c.BucketBytesMax < 0 {
		errs = append(errs, fmt.Errorf("bucket bytes %d is negative: %w", c.BucketBytesMax, ErrConfig))
	}
	return errors.Join(errs...)
}

// workers returns the number of goroutines to use.
func (c Config) workers() int {
	if c.Workers > 0 {
		return c.Workers
	}
	return min(runtime.GOMAXPROCS(0), WorkersMax)
}

// windowCount is the number of windows of c bits that hold a scalar below 2^254 (see recode) in signed digits.
func windowCount(c int) int { return (scalarBits + c - 1) / c }

// windowBits picks the window size for n full scalars: the least number of additions, a bucket costing two in the
// final reduction, under the bound on bucket memory.
func (c Config) windowBits(n, pointBytes int) int {
	if c.WindowBits != 0 {
		return c.WindowBits
	}
	bound := c.BucketBytesMax
	if bound == 0 {
		bound = bucketBytesDefault
	}
	best, bestCost := WindowBitsMin, int64(-1)
	for w := WindowBitsMin; w <= WindowBitsMax; w++ {
		buckets := windowCount(w) << (w - 1)
		if w > 10 && buckets*pointBytes > bound {
			break
		}
		cost := int64(windowCount(w))*int64(n) + 2*int64(buckets)
		if bestCost < 0 || cost < bestCost {
			best, bestCost = w, cost
		}
	}
	return best
}
