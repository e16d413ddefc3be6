package handoff

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/ledger"
)

// backing is what the pages of segments of this kind count as.
func (k Kind) backing() flight.Backing {
	if k == SHM {
		return flight.Shared
	}
	return flight.File
}

// filesProcess is the name under which the folders' files are reported.
const filesProcess = "spill folder"

// Flight reports the files of the spill folders, whichever process has them mapped, if any: segments as handed over,
// and the pool as scratch, an asset.
func (s *Spill) Flight() (flight.Report, error) {
	r := flight.Report{Process: filesProcess}
	segments := flight.ClassReport{Class: ledger.ClassAssignment}
	free := flight.ClassReport{Class: ledger.ClassScratch}
	for _, f := range s.folders {
		if err := f.segments(&segments); err != nil {
			return r, err
		}
		count, bytes, err := sizes(f.pool)
		if err != nil {
			return r, err
		}
		free.Pieces += int64(count)
		free.Bytes += bytes
	}
	free.KeptPieces, free.KeptBytes = free.Pieces, free.Bytes
	if segments.Pieces > 0 {
		segments.Live = []flight.StageCount{{Stage: flight.HandedOver, Pieces: segments.Pieces, Bytes: segments.Bytes}}
		r.Classes = append(r.Classes, segments)
	}
	if free.Pieces > 0 {
		free.Live = []flight.StageCount{{Stage: flight.Allocated, Pieces: free.Pieces, Bytes: free.Bytes}}
		r.Classes = append(r.Classes, free)
	}
	r.LiveBytes = segments.Bytes + free.Bytes
	return r, nil
}

// segments counts the files of attempts and names the oldest.
func (f *folder) segments(c *flight.ClassReport) error {
	names, err := list(f.seg)
	if err != nil {
		return err
	}
	for _, name := range names {
		var stat unix.Stat_t
		if unix.Fstatat(int(f.seg.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		bytes := bytesize.Bytes(stat.Blocks * 512)
		c.Pieces++
		c.Bytes += bytes
		a, _, ok := attemptOf(name)
		if !ok {
			continue
		}
		age := time.Since(time.Unix(stat.Ctim.Unix()))
		c.Oldest = append(c.Oldest, flight.Piece{
			Label: a.String(), Stage: flight.HandedOver, Bytes: bytes, AgeMS: max(0, age.Milliseconds()),
		})
	}
	slices.SortFunc(c.Oldest, func(a, b flight.Piece) int { return cmp.Compare(b.AgeMS, a.AgeMS) })
	c.Oldest = c.Oldest[:min(len(c.Oldest), flight.PiecesMax)]
	return nil
}
