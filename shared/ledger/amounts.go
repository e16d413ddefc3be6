package ledger

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Pool is one kind of memory on one node.
type Pool string

// Pools of a node. Every byte of PoolPinned and of PoolSHM is also one of PoolRAM: who books the former books both.
const (
	PoolRAM    Pool = "ram"
	PoolPinned Pool = "pinned"
	PoolSHM    Pool = "shm"
	PoolDisk   Pool = "disk"
)

const vramPrefix = "vram:"

// PoolVRAM is the memory of a device.
func PoolVRAM(d job.Device) Pool { return Pool(vramPrefix + string(d)) }

// Check refuses what is no pool's name.
func (p Pool) Check() error {
	switch p {
	case PoolRAM, PoolPinned, PoolSHM, PoolDisk:
		return nil
	}
	if device, ok := strings.CutPrefix(string(p), vramPrefix); ok {
		if _, err := job.ParseDevice(device); err == nil {
			return nil
		}
	}
	return fault.New(fault.Invalid, "pool %q is none of ram, pinned, shm, disk and vram:<device>", string(p))
}

// PoolsMax bounds the pools of a node.
const PoolsMax = 64

// Amounts are bytes by pool. A pool that is not there counts as 0.
type Amounts map[Pool]bytesize.Bytes

// Check refuses unknown pools and amounts outside 0 … bytesize.Max.
func (a Amounts) Check() error {
	if len(a) > PoolsMax {
		return fault.New(fault.Invalid, "%d pools are over the limit of %d", len(a), PoolsMax)
	}
	for pool, amount := range a {
		if err := pool.Check(); err != nil {
			return err
		}
		if _, err := bytesize.Of(int64(amount)); err != nil {
			return fault.As(fault.Invalid, fmt.Errorf("pool %s: %w", pool, err))
		}
	}
	return nil
}

// Pools are the names of the pools, sorted.
func (a Amounts) Pools() []Pool { return slices.Sorted(maps.Keys(a)) }

// Clone is a copy without pools of 0.
func (a Amounts) Clone() Amounts {
	c := Amounts{}
	for pool, amount := range a {
		if amount != 0 {
			c[pool] = amount
		}
	}
	return c
}

// Plus is the sum, pool by pool.
func (a Amounts) Plus(b Amounts) (Amounts, error) {
	sum := a.Clone()
	for pool, amount := range b {
		total, err := sum[pool].Add(amount)
		if err != nil {
			return nil, fmt.Errorf("pool %s: %w", pool, err)
		}
		if total != 0 {
			sum[pool] = total
		}
	}
	return sum, nil
}

// Minus is the difference, pool by pool; it fails when b has more of a pool than a.
func (a Amounts) Minus(b Amounts) (Amounts, error) {
	rest := a.Clone()
	for pool, amount := range b {
		left, err := rest[pool].Sub(amount)
		if err != nil {
			return nil, fmt.Errorf("pool %s: %w", pool, err)
		}
		rest[pool] = left
		if left == 0 {
			delete(rest, pool)
		}
	}
	return rest, nil
}

// String lists the pools, sorted: "ram 300 MiB, shm 254 MiB".
func (a Amounts) String() string {
	var parts []string
	for _, pool := range a.Pools() {
		parts = append(parts, fmt.Sprintf("%s %s", pool, a[pool]))
	}
	return strings.Join(parts, ", ")
}

// Class says what bytes are for, in reports.
type Class string

// The classes of large buffers (design section 4). Assets are of the first two or scratch.
const (
	ClassSRS        Class = "srs"        // mapped parameters
	ClassArtifact   Class = "artifact"   // what is kept per circuit beside them
	ClassEvals      Class = "evals"      // a prover's evaluation vectors at full width
	ClassAssignment Class = "assignment" // a partition's segment: compact a, b and assignment
	ClassInput      Class = "input"      // slices and what is decoded of them
	ClassScratch    Class = "scratch"    // what comes and goes within a stage; free segments
)

// Classes lists all of them.
func Classes() []Class {
	return []Class{ClassSRS, ClassArtifact, ClassEvals, ClassAssignment, ClassInput, ClassScratch}
}

// Asset is something that is kept on a node between attempts and shared by them, e.g. "srs:porep-32GiB". It is booked
// once per node and pool, however many attempts use it.
type Asset struct {
	Name  string         `json:"name"`
	Pool  Pool           `json:"pool"`
	Class Class          `json:"class"`
	Bytes bytesize.Bytes `json:"bytes"`
}

var assetName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9:._-]{0,95}$`)

// Check refuses what is no asset.
func (a *Asset) Check() error {
	if !assetName.MatchString(a.Name) {
		return fault.New(fault.Invalid, "asset name %.100q is illegal", a.Name)
	}
	return Amounts{a.Pool: a.Bytes}.Check()
}
