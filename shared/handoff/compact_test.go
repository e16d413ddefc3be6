package handoff_test

import (
	"errors"
	"testing"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/toy"
)

// TestCompactSegmentSurvivesTheHandoff synthesizes into fresh and into reused memory that is full of another body, and
// reads, verifies and checks what comes out. A body that changes after the seal is found by its own checksums (B85).
func TestCompactSegmentSurvivesTheHandoff(t *testing.T) {
	t.Parallel()
	s, c := newSpill(t, memoryFolder(t)), toy.Circuit()
	layout, err := compact.LayoutOf(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, seed := range []uint64{1, 2, 3} {
		a := attempt(1, i, 1)
		w, err := c.Decode(toy.Slice(seed))
		if err != nil {
			t.Fatal(err)
		}
		spec := handoff.Spec{Attempt: a, Circuit: c.ID(), Bytes: bytesize.Bytes(layout.Bytes())}
		d, err := s.Create(t.Context(), spec)
		if err != nil || d.Reused() != (i > 0) {
			t.Fatalf("create: reused %v, %v", d.Reused(), err)
		}
		work := compact.Job{Circuit: c, Witness: w, Partition: i, Workers: 2}
		if _, err := work.Synthesize(t.Context(), d.Memory()); err != nil {
			t.Fatal(err)
		}
		if err := d.Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
		seg, err := s.Open(t.Context(), handoff.Want{Attempt: a, Circuit: c.ID(), Bytes: spec.Bytes})
		if err != nil {
			t.Fatal(err)
		}
		body, err := compact.Open(seg.Memory())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(body.Verify(2), body.Check(c, 2)); err != nil {
			t.Error(err)
		}
		d.Memory()[layout.Bytes()/2] ^= 1
		if err := body.Verify(1); !errors.Is(err, compact.ErrCorrupt) {
			t.Errorf("a changed body: %v", err)
		}
		if err := errors.Join(d.Close(), seg.GiveBack()); err != nil {
			t.Fatal(err)
		}
	}
}
