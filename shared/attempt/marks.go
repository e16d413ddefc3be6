package attempt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/internal/groupdir"
	"github.com/proofrack/proofrack/shared/job"
)

// DeathsMax is how many workers may die at work on one attempt. The first is forgiven: it may have been chance. After
// the last the attempt is lost, so that work that kills its worker before anything can be reported counts, too (B45).
const DeathsMax = 2

// Marks are files that tell which attempts the node's processes of one role are at work on. A run holds a lock on its
// mark, which the kernel drops with the process; a mark that nobody holds was left by a process that died. Deliveries
// prove nothing: a message also comes again after a restart in good order, an outage of the bus or a lost
// acknowledgement, and none of these may cost a partition anything.
type Marks struct {
	folder string
	group  int
	log    zerolog.Logger
}

// NewMarks keeps marks in a folder, which is made when it is needed and shared with a group unless that is −1.
func NewMarks(folder string, group int, log zerolog.Logger) *Marks {
	return &Marks{folder: folder, group: group, log: log}
}

// mark is the one of a run. All methods work on nil: then nothing is known and nothing is kept.
type mark struct {
	marks *Marks
	path  string

	mu     sync.Mutex
	file   *os.File
	deaths int // of workers at work on the attempt, before this one
	depth  int // of idle
}

// open takes the mark of an attempt. It is nil when there can be none: when another process is at work on the attempt,
// or the folder has no room; then deaths go uncounted, which is no fault of the attempt.
func (m *Marks) open(a job.Attempt) *mark {
	if m == nil {
		return nil
	}
	k := &mark{marks: m, path: filepath.Join(m.folder, a.String())}
	if err := k.take(); err != nil {
		if !errors.Is(err, unix.EWOULDBLOCK) {
			m.log.Warn().Err(err).Stringer("attempt", a).Msg("work is not marked, a death would not be counted")
		}
		return nil
	}
	return k
}

// Modes of marks.
const markMode, markGroupMode = 0o600, 0o660

// markPause is between two tries to lock a mark.
const markPause = time.Millisecond

// take opens and locks the file, and reads how many died.
func (k *mark) take() error {
	if err := groupdir.Make(k.marks.folder, k.marks.group); err != nil {
		return err
	}
	const triesMax = 8 // another process may remove the file between opening and locking, or look at it
	for range triesMax {
		f, linked, err := lockMark(k.path, os.O_CREATE)
		if errors.Is(err, unix.EWOULDBLOCK) {
			time.Sleep(markPause) // it may be a look at it, which takes no time
			continue
		}
		if err != nil {
			return err
		}
		if !linked {
			if err := f.Close(); err != nil {
				return err
			}
			continue
		}
		if k.marks.group >= 0 { // somebody else of the group may have made it
			_, _ = f.Chown(-1, k.marks.group), f.Chmod(markGroupMode)
		}
		k.file = f
		k.deaths, err = readDeaths(f)
		if err != nil {
			k.file = nil
			return errors.Join(err, f.Close())
		}
		return nil
	}
	return unix.EWOULDBLOCK
}

// lockMark opens and locks a mark and tells whether it is still there.
func lockMark(path string, flags int) (f *os.File, linked bool, err error) {
	f, err = os.OpenFile(path, os.O_RDWR|flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, markMode)
	if err != nil {
		return nil, false, err
	}
	var stat unix.Stat_t
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = unix.Fstat(int(f.Fd()), &stat)
	}
	if err != nil {
		return nil, false, errors.Join(err, f.Close())
	}
	return f, stat.Nlink > 0, nil
}

// readDeaths reads a mark. What is no number counts as none: it was not written by us.
func readDeaths(f *os.File) (int, error) {
	text := make([]byte, 8)
	n, err := f.ReadAt(text, 0)
	if n == 0 && err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	deaths, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil || deaths < 0 {
		return 0, nil //nolint:nilerr // see above
	}
	return min(deaths, DeathsMax), nil
}

// died is how many workers died at work on the attempt.
func (k *mark) died() int {
	if k == nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.deaths
}

// work says that the attempt is being worked on: if the process dies now, that counts.
func (k *mark) work() { k.step(-1) }

// rest says that it is not: it waits for others.
func (k *mark) rest() { k.step(1) }

func (k *mark) step(by int) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.depth += by
	if k.file == nil {
		return
	}
	deaths := k.deaths
	if k.depth < 0 {
		deaths++
	}
	// One digit in place of another: whoever reads it after our death sees the old number or the new one.
	if _, err := k.file.WriteAt([]byte(strconv.Itoa(deaths)), 0); err != nil {
		k.marks.log.Warn().Err(err).Str("mark", k.path).Msg("work is not marked, a death would not be counted")
	}
}

// end removes the mark: the attempt ended in this process, whatever its outcome.
func (k *mark) end() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == nil {
		return
	}
	err := os.Remove(k.path)
	err = errors.Join(err, k.file.Close())
	k.file = nil
	if err != nil {
		k.marks.log.Warn().Err(err).Str("mark", k.path).Msg("mark of ended work stays")
	}
}

// Sweep removes marks that no process holds and whose attempts are not wanted any more: current says no. An error of
// it leaves the mark for the next sweep.
func (m *Marks) Sweep(ctx context.Context, current func(context.Context, job.Attempt) (bool, error)) error {
	entries, err := os.ReadDir(m.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweep marks of work: %w", err)
	}
	var all error
	for _, e := range entries {
		a, err := job.ParseAttempt(e.Name())
		if err != nil || !e.Type().IsRegular() {
			continue // not ours
		}
		path := filepath.Join(m.folder, e.Name())
		if !unheld(path) {
			continue
		}
		if wanted, err := current(ctx, a); err == nil && !wanted && unheld(path) {
			if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
				all = errors.Join(all, err)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return all
}

// unheld tells whether a mark is there and no process holds it.
func unheld(path string) bool {
	f, linked, err := lockMark(path, 0)
	if err != nil {
		return false
	}
	return f.Close() == nil && linked
}

// work does the work under a mark. Only a death under way leaves the mark behind: not even a panic removes it.
func (l *loop) work(ctx context.Context, r *Run) error {
	r.mark = l.Marks.open(r.attempt)
	if died := r.mark.died(); died >= DeathsMax {
		r.mark.end()
		return fmt.Errorf("attempt %s: %d workers died at work on it: %w", r.attempt, died, ErrDeaths)
	}
	r.mark.work()
	err := r.task.Work(ctx, r)
	r.mark.end()
	return err
}

// Idle does something that only waits for others: if the process dies meanwhile, it was not the attempt.
func (r *Run) Idle(wait func() error) error {
	r.mark.rest()
	defer r.mark.work()
	return wait()
}
