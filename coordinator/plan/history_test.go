package plan

import (
	"bytes"
	"flag"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/bytesize"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

// golden compares with a file, or writes it.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what is made now (−file +now); \"make plan-history\" makes it anew:\n%s", path, diff)
	}
}

// The record in docs/bench is what "make plan-history" makes.
func TestHistoryRecordIsCurrent(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	if err := WriteHistory(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	golden(t, "../../docs/bench/plan-history.md", got.Bytes())
	pictures, err := HistoryPictures(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range pictures {
		got.Reset()
		if err := write(&got); err != nil {
			t.Fatal(err)
		}
		golden(t, "../../docs/bench/"+name, got.Bytes())
	}
}

// Each published row is met within 15 %, or has a cause; a cause without a deviation is stale.
func TestHistoryIsReproducedOrExplained(t *testing.T) {
	t.Parallel()
	rows, err := History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	explained := 0
	for i := range rows {
		h := &rows[i]
		if beyond := math.Abs(h.SecondsOff()) > within; beyond != (h.SecondsCause != "") {
			t.Errorf("workers %d, feeders %d, %d proofs: s/proof is off by %s, cause %q", h.Workers, h.Feeders, h.Jobs,
				percent(h.SecondsOff()), h.SecondsCause)
		}
		if beyond := math.Abs(h.MemoryOff()) > within; beyond != (h.MemoryCause != "") {
			t.Errorf("workers %d, feeders %d, %d proofs: memory is off by %s, cause %q", h.Workers, h.Feeders, h.Jobs,
				percent(h.MemoryOff()), h.MemoryCause)
		}
		if h.SecondsCause != "" || h.MemoryCause != "" {
			explained++
		}
		if h.Result.Jobs != h.Jobs || h.Result.Killed != nil {
			t.Errorf("workers %d: %d of %d proofs, %+v", h.Workers, h.Result.Jobs, h.Jobs, h.Result.Killed)
		}
	}
	if explained > len(rows)/2 {
		t.Errorf("%d of %d rows need a cause", explained, len(rows))
	}
}

// With the permit given back after synthesis finished partitions pile up past 650 GiB and the box is killed; held until
// delivery it peaks as the published rows of 12 workers do.
func TestPermitGivenBackPilesUp(t *testing.T) {
	t.Parallel()
	back, err := PileUp(t.Context(), PermitSynthesis, boxRAM)
	if err != nil {
		t.Fatal(err)
	}
	if back.Killed == nil || gib(back.ramOf().Held) < 650 || back.Killed.Sealed < 20 {
		t.Errorf("given back: %+v, %.0f GiB", back.Killed, gib(back.ramOf().Held))
	}
	held, err := PileUp(t.Context(), PermitDelivery, boxRAM)
	if err != nil {
		t.Fatal(err)
	}
	peak := gib(held.ramOf().Held)
	if held.Killed != nil || peak < 294.7 || peak > 400 || math.Abs(peak/373-1) > within {
		t.Errorf("held: %+v, %.0f GiB; published are 294.7, 373 and 400", held.Killed, peak)
	}
	unbounded, err := PileUp(t.Context(), PermitSynthesis, 4*bytesize.TiB)
	if err != nil {
		t.Fatal(err)
	}
	if unbounded.Killed != nil || unbounded.Jobs != 20 {
		t.Errorf("with memory without end: %d jobs, %+v", unbounded.Jobs, unbounded.Killed)
	}
}
