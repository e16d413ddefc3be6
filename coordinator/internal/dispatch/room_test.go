package dispatch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Idle assets go by how long they were not used, in units of the time to load them again; no more than are needed, none
// that is used, was used just now, or is wanted, and none at all when they would not be enough.
func TestVictimsAreTheCheapestToLose(t *testing.T) {
	t.Parallel()
	const gib = bytesize.GiB
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	asset := func(name string, pool ledger.Pool, n bytesize.Bytes) ledger.Asset {
		return ledger.Asset{Name: name, Pool: pool, Class: ledger.ClassSRS, Bytes: n}
	}
	have := func(name string, pool ledger.Pool, n bytesize.Bytes, users int, idle time.Duration) ledger.AssetEntry {
		return ledger.AssetEntry{Asset: asset(name, pool, n), Users: users, UsedAt: now.Add(-idle)}
	}
	vram := ledger.PoolVRAM("gpu0")
	l := &Leader{cfg: DefaultConfig()}
	for name, c := range map[string]struct {
		have    []ledger.AssetEntry
		want    []ledger.Asset
		leaving []string
		victims []string
		enough  bool
	}{
		"there is room": {
			have: []ledger.AssetEntry{have("old", ledger.PoolRAM, 50*gib, 0, time.Hour)},
			want: []ledger.Asset{asset("new", ledger.PoolRAM, 50*gib)}, enough: true,
		},
		"it is booked": {
			have: []ledger.AssetEntry{have("new", ledger.PoolRAM, 60*gib, 0, time.Hour)},
			want: []ledger.Asset{asset("new", ledger.PoolRAM, 60*gib)}, enough: true,
		},
		"the oldest": {
			have: []ledger.AssetEntry{
				have("old", ledger.PoolRAM, 50*gib, 0, time.Hour), have("older", ledger.PoolRAM, 50*gib, 0, 2*time.Hour),
			},
			want: []ledger.Asset{asset("new", ledger.PoolRAM, 50*gib)}, victims: []string{"older"}, enough: true,
		},
		"the one that is loaded again sooner": {
			have: []ledger.AssetEntry{
				have("large", ledger.PoolRAM, 60*gib, 0, 2*time.Hour), have("small", ledger.PoolRAM, 20*gib, 0, time.Hour),
			},
			want: []ledger.Asset{asset("new", ledger.PoolRAM, 40*gib)}, victims: []string{"small"}, enough: true,
		},
		"what is used stays": {
			have: []ledger.AssetEntry{have("used", ledger.PoolRAM, 90*gib, 1, time.Hour)},
			want: []ledger.Asset{asset("new", ledger.PoolRAM, 20*gib)},
		},
		"what was used just now stays": {
			have: []ledger.AssetEntry{have("fresh", ledger.PoolRAM, 90*gib, 0, 4*time.Second)},
			want: []ledger.Asset{asset("new", ledger.PoolRAM, 20*gib)},
		},
		"all would not be enough": {
			have: []ledger.AssetEntry{
				have("used", ledger.PoolRAM, 60*gib, 1, time.Hour), have("idle", ledger.PoolRAM, 30*gib, 0, time.Hour),
			},
			want: []ledger.Asset{asset("new", ledger.PoolRAM, 50*gib)},
		},
		"one of two pools is not enough": {
			have: []ledger.AssetEntry{
				have("idle", ledger.PoolRAM, 90*gib, 0, time.Hour), have("used", vram, 8*gib, 1, time.Hour),
			},
			want: []ledger.Asset{asset("new", ledger.PoolRAM, 20*gib), asset("new", vram, 8*gib)},
		},
		"what is wanted itself stays": {
			have: []ledger.AssetEntry{
				have("part", ledger.PoolRAM, 20*gib, 0, 9*time.Hour), have("idle", ledger.PoolRAM, 70*gib, 0, time.Hour),
			},
			want:    []ledger.Asset{asset("part", ledger.PoolRAM, 20*gib), asset("new", ledger.PoolRAM, 30*gib)},
			victims: []string{"idle"}, enough: true,
		},
		"what leaves already is enough": {
			have: []ledger.AssetEntry{
				have("leaving", ledger.PoolRAM, 50*gib, 0, time.Hour), have("idle", ledger.PoolRAM, 50*gib, 0, time.Hour),
			},
			want: []ledger.Asset{asset("new", ledger.PoolRAM, 50*gib)}, leaving: []string{"leaving"}, enough: true,
		},
		"free segments give way": {
			have: []ledger.AssetEntry{have(ledger.AssetSegments, ledger.PoolRAM, 90*gib, 0, time.Hour)},
			want: []ledger.Asset{asset("new", ledger.PoolRAM, 50*gib)}, enough: true,
		},
	} {
		book := &ledger.NodeBook{
			Now: now, Capacity: ledger.Amounts{ledger.PoolRAM: 100 * gib, vram: 8 * gib}, Used: ledger.Amounts{},
			Assets: c.have,
		}
		for _, a := range c.have {
			book.Used[a.Pool] += a.Bytes
		}
		leaving := map[string]time.Time{}
		for _, asset := range c.leaving {
			leaving[asset] = now
		}
		got, enough := l.victims(book, c.want, leaving)
		if diff := cmp.Diff(c.victims, got); diff != "" || enough != c.enough {
			t.Errorf("%s: enough %v, victims (-want +got):\n%s", name, enough, diff)
		}
	}
}
