package verb

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// The list has of each size what is computed, measured and booked, whether it drifts and is pinned, and of each device
// how fast it is.
func TestMemoryIsListed(t *testing.T) {
	t.Parallel()
	r := &memoryResult{&wire.MemoryReply{
		Sizes: []wire.MemorySize{
			{
				Circuit: "c", Stage: job.Synthesizing, Kind: "NVIDIA H200", Pool: ledger.PoolRAM, Computed: 70 * bytesize.MiB,
				P50: 99 * bytesize.MiB, P99: 100 * bytesize.MiB, Samples: 12, Booked: 110 * bytesize.MiB, Drift: wire.DriftOver,
			},
			{Circuit: "c", Stage: job.Proving, Pool: "vram", Booked: 3 * bytesize.GiB, Pinned: true},
		},
		Speeds: []wire.StageSpeed{{
			Circuit: "c", Node: "n1", Device: "gpu0", Synthesis: 12 * time.Second, Proof: 2500 * time.Millisecond, Samples: 7,
			At: time.Now().Add(-time.Hour),
		}},
	}}
	var out bytes.Buffer
	r.human(&out)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range [][]string{
		{"circuit", "stage", "devices", "pool", "computed", "measured p50", "p99", "samples", "booked", "drift"},
		{"c", "synthesizing", "NVIDIA H200", "ram", "70.00 MiB", "99.00 MiB", "100.00 MiB", "12", "110 MiB", "over, +43 %"},
		{"c", "proving", "-", "vram", "-", "0", "3 GiB (pinned)"},
		{""},
		{"circuit", "node", "device", "synthesis"},
		{"c", "n1", "gpu0", "12s", "2.5s", "7", "1h00m ago"},
	} {
		for _, w := range want {
			if i >= len(lines) || !strings.Contains(lines[i], w) {
				t.Errorf("line %d lacks %q:\n%s", i, w, out.String())
			}
		}
	}
	out.Reset()
	(&memoryResult{&wire.MemoryReply{}}).human(&out)
	if !strings.Contains(out.String(), "nothing was measured yet") {
		t.Errorf("empty: %s", out.String())
	}
}

func TestPinRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"pin", "c", "proving", "ram"}, {"pin", "c", "proving", "ram", "many"}, {"pin", "c", "proving", "ram", "0"},
		{"pin", "", "proving", "ram", "1GiB"}, {"unpin", "c", "proving"}, {"unpin", "c", "proving", "ram", "1GiB"},
	} {
		c := (&app{}).memoryCommand()
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetArgs(append(args, "--server", "nats://127.0.0.1:1"))
		err := c.ExecuteContext(t.Context())
		if f := (*failure)(nil); !errors.As(err, &f) || f.kind != usage {
			t.Errorf("%q: %v", args, err)
		}
	}
}
