package handoff_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
)

// BenchmarkSegment measures one segment's way through both processes: create and fill, seal, open and read, give back.
// "fresh" gets a new file each time, "pooled" one whose pages were touched before.
func BenchmarkSegment(b *testing.B) {
	for _, c := range []struct {
		name   string
		pooled bool
	}{{"fresh", false}, {"pooled", true}} {
		b.Run(c.name+"/bytes=256MiB", func(b *testing.B) { benchSegment(b, c.pooled, 256<<20) })
	}
}

func benchSegment(b *testing.B, pooled bool, size int64) {
	s := newSpill(b, filepath.Join(memoryFolder(b), "spill"))
	source := make([]byte, size)
	for i := range source {
		source[i] = byte(i * 7)
	}
	one := func(a job.Attempt) {
		d, err := s.Create(b.Context(), handoff.Spec{Attempt: a, Circuit: circuitID, Bytes: 256 << 20})
		if err != nil {
			b.Fatal(err)
		}
		copy(d.Memory(), source)
		if err := errors.Join(d.Seal(b.Context()), d.Close()); err != nil {
			b.Fatal(err)
		}
		seg := mustOpen(b, s, a)
		if seg.Memory()[size-1] != source[size-1] {
			b.Fatal("another body")
		}
		if err := seg.GiveBack(); err != nil {
			b.Fatal(err)
		}
	}
	one(attempt(1, 0, 1))
	b.SetBytes(size)
	for n := uint64(2); b.Loop(); n++ {
		if !pooled {
			b.StopTimer()
			if err := trim(s, handoff.SHM, 0); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		one(attempt(1, 0, n))
	}
}

// BenchmarkParts measures create, and open with give-back, apart.
func BenchmarkParts(b *testing.B) {
	const size = 256 << 20
	b.Run("create/pooled", func(b *testing.B) {
		s := newSpill(b, filepath.Join(memoryFolder(b), "spill"))
		for n := uint64(1); b.Loop(); n++ {
			d, err := s.Create(b.Context(), handoff.Spec{Attempt: attempt(1, 0, n), Circuit: circuitID, Bytes: size})
			if err != nil {
				b.Fatal(err)
			}
			if err := d.GiveBack(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("create/fresh", func(b *testing.B) {
		s := newSpill(b, filepath.Join(memoryFolder(b), "spill"))
		for n := uint64(1); b.Loop(); n++ {
			d, err := s.Create(b.Context(), handoff.Spec{Attempt: attempt(1, 0, n), Circuit: circuitID, Bytes: size})
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := errors.Join(d.GiveBack(), trim(s, handoff.SHM, 0)); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("open", func(b *testing.B) {
		s, a := newSpill(b, filepath.Join(memoryFolder(b), "spill")), attempt(1, 0, 1)
		mustWrite(b, s, a, size)
		for b.Loop() {
			seg := mustOpen(b, s, a)
			if err := seg.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
