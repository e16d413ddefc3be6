package verb

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// The list says of each asset how large it is, who uses it and whether it is loaded, and of each circuit what goes on.
func TestAssetsAreListed(t *testing.T) {
	t.Parallel()
	asset := func(name string, users int, present bool) wire.AssetView {
		return wire.AssetView{
			Asset: ledger.Asset{Name: name, Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: 44 * bytesize.GiB},
			Users: users, UsedAt: time.Now().Add(-time.Hour), Present: present,
		}
	}
	r := &assetsResult{&wire.AssetsReply{Nodes: []wire.NodeAssets{{
		Node: "n1", Assets: []wire.AssetView{asset("srs:a", 3, true), asset("srs:b", 0, false)},
		Circuits: []wire.CircuitState{
			{Device: "gpu0", Circuit: "a", Ready: true},
			{Device: "gpu0", Circuit: "b", Missing: "parameter file is missing\nx"},
			{Device: "gpu0", Circuit: "c", Loading: &wire.Loading{
				What: "copy", Done: 11 * bytesize.GiB, Total: 44 * bytesize.GiB,
			}},
		},
	}}}}
	var out bytes.Buffer
	r.human(&out)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range [][]string{
		{"node n1"}, {"srs:a", "44 GiB of ram", "3 users", "1h", "loaded"}, {"srs:b", "0 users", "not loaded yet"},
		{"circuit a", "gpu0", "ready"}, {"circuit b", "parameter file is missing"}, {"circuit c", "copy: 11 GiB of 44 GiB"},
	} {
		for _, w := range want {
			if i >= len(lines) || !strings.Contains(lines[i], w) {
				t.Errorf("line %d lacks %q:\n%s", i, w, out.String())
			}
		}
	}
	if len(lines) != 6 {
		t.Errorf("%d lines:\n%s", len(lines), out.String())
	}
}
