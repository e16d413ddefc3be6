package residency_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/worker-gpu/internal/residency"
)

// What is resident is counted as assets while it is there, and its eviction until the memory is back.
func TestWhatIsResidentIsCounted(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	res, release, err := b.Acquire(t.Context(), b.circuit.ID())
	if err != nil {
		t.Fatal(err)
	}
	srsBytes, artifactBytes := res.SRSBytes(), res.ArtifactBytes()
	report := b.flight.Report()
	srs, artifact := report.Class(ledger.ClassSRS), report.Class(ledger.ClassArtifact)
	if srs.KeptPieces != 1 || srs.KeptBytes != srsBytes || artifact.KeptBytes != artifactBytes || !report.Idle() ||
		srs.Oldest[0].Label != b.circuit.ID() {
		t.Errorf("loaded: %+v", report)
	}
	release()
	if _, err := b.Evict(b.circuit.ID(), none); err != nil {
		t.Fatal(err)
	}
	report = b.flight.Report()
	if srs := report.Class(ledger.ClassSRS); srs.Pieces != 0 || srs.GoneBytes != srsBytes {
		t.Errorf("evicted: %+v", report)
	}
	for tries := 0; report.LiveBytes > 0; tries++ {
		if tries == 12_000 {
			t.Fatalf("the artifact stays: %+v", report)
		}
		b.flight.Collect()
		time.Sleep(5 * time.Millisecond)
		report = b.flight.Report()
	}
	if artifact := report.Class(ledger.ClassArtifact); artifact.GonePieces != 1 || report.Defects != 0 {
		t.Errorf("collected: %+v", report)
	}
}

// What failed to load is not counted.
func TestWhatDidNotLoadIsNotCounted(t *testing.T) {
	t.Parallel()
	b := newBench(t, false)
	if _, _, err := b.Acquire(t.Context(), b.circuit.ID()); err == nil {
		t.Fatal("loaded without a file")
	}
	if report := b.flight.Report(); report.HighBytes != 0 {
		t.Errorf("%+v", report)
	}
}

// An image counts in the process that keeps it, from its making to its last release; one that failed does not.
func TestImagesAreCounted(t *testing.T) {
	t.Parallel()
	r, err := flight.New(flight.Config{Process: "test", Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	images, broken := residency.NewImages(r), errors.New("decoding failed")
	_, _, err = images.Hold(t.Context(), "toy", "digest", 4096, func(*os.File) error { return broken })
	report := r.Report()
	if srs := report.Class(ledger.ClassSRS); !errors.Is(err, broken) || srs.Pieces != 0 || srs.HighBytes != 4096 {
		t.Errorf("failed with %v: %+v", err, report)
	}
	fill := func(*os.File) error { return nil }
	_, first, err := images.Hold(t.Context(), "toy", "digest", 8192, fill)
	if err != nil {
		t.Fatal(err)
	}
	_, second, err := images.Hold(t.Context(), "toy", "digest", 8192, fill)
	if err != nil {
		t.Fatal(err)
	}
	if err := first(); err != nil {
		t.Error(err)
	}
	report = r.Report()
	want := []flight.StageCount{{Stage: flight.Sealed, Pieces: 1, Bytes: 8192}}
	if diff := cmp.Diff(want, report.Class(ledger.ClassSRS).Live); diff != "" || !report.Idle() {
		t.Errorf("held: %s", diff)
	}
	if err := second(); err != nil {
		t.Error(err)
	}
	if report = r.Report(); report.LiveBytes != 0 {
		t.Errorf("given back: %+v", report)
	}
}
