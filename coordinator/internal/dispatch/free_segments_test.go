package dispatch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// Invariant 1: free segments count in the pools that they lie in. What is more than its pool is not believed.
func TestFreeSegmentsAreBookedWhereTheyLie(t *testing.T) {
	t.Parallel()
	asset := func(pool ledger.Pool, n bytesize.Bytes) ledger.Asset {
		return ledger.Asset{Name: ledger.AssetSegments, Pool: pool, Class: ledger.ClassScratch, Bytes: n}
	}
	capacity := ledger.Amounts{ledger.PoolRAM: 100, ledger.PoolSHM: 50, ledger.PoolDisk: 200}
	for name, c := range map[string]struct {
		shm, disk bytesize.Bytes
		want      []ledger.Asset
	}{
		"none":      {0, 0, nil},
		"in memory": {40, 0, []ledger.Asset{asset(ledger.PoolSHM, 40), asset(ledger.PoolRAM, 40)}},
		"on disk":   {0, 150, []ledger.Asset{asset(ledger.PoolDisk, 150)}},
		"both": {50, 200, []ledger.Asset{
			asset(ledger.PoolSHM, 50), asset(ledger.PoolRAM, 50), asset(ledger.PoolDisk, 200),
		}},
		"more than all": {51, 201, nil},
	} {
		got := freeSegments(&wire.HostReport{Capacity: capacity, FreeSHMBytes: c.shm, FreeDiskBytes: c.disk})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
