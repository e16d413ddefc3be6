package agent

import (
	"cmp"
	"context"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/job"
)

// An attempt that ended here leaves a mark, an empty file, made in the same step that takes its booking out of the
// book. Its bytes are reported free while its record still says that it runs, since the outcome has yet to be looked
// at; if its message comes once more meanwhile, to a worker that has not seen it before, that must not book bytes that
// the ledger gives to others by then. The mark goes when the record says that the attempt is over.

// freedMax bounds the marks; the oldest jobs' go first.
const freedMax = BookingsMax

func (b *Book) freedPath(a job.Attempt) string { return b.path(freedPrefix + a.String()) }

// noteFreed makes the mark. It must run under the lock. A folder without room for it keeps nothing from being freed:
// the worst without it is work that is done again, and that the node's own bound holds for.
func (b *Book) noteFreed(a job.Attempt) {
	f, err := os.OpenFile(b.freedPath(a), os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err == nil {
		_ = f.Close()
	}
}

// freed lists the marks.
func (b *Book) freed(ctx context.Context) (all []job.Attempt, err error) {
	err = b.locked(ctx, func() error {
		c, err := b.scan()
		if err == nil {
			all = c.freed
		}
		return err
	})
	return all, err
}

// mendFreed removes the marks of attempts that are over by their records, and what is more than freedMax.
func (b *Book) mendFreed(freed []job.Attempt, stale map[job.Attempt]bool, m *Mended) error {
	slices.SortFunc(freed, func(x, y job.Attempt) int { return cmp.Compare(x.String(), y.String()) })
	for i, a := range freed {
		if !stale[a] && i >= len(freed)-freedMax {
			continue
		}
		if err := b.remove(freedPrefix + a.String()); err != nil {
			return err
		}
		m.FreedForgotten++
	}
	return nil
}
