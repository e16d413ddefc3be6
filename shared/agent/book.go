package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/internal/groupdir"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// BookingsMax bounds the bookings of a node.
const BookingsMax = 1024

// What callers may ask for with errors.Is; the kind of the first three is Conflict, of ErrNotBooked NotFound, of
// ErrFreed Lost, of ErrBookClosed Internal.
var (
	// ErrBooked: a live worker holds a booking of this attempt.
	ErrBooked = errors.New("attempt is booked by a live worker")
	// ErrHandedOver: the attempt's sealed segment waits to be proved; publish that again instead of synthesizing.
	ErrHandedOver = errors.New("attempt was synthesized and handed over")
	// ErrMoved: the booking belongs to somebody else by now.
	ErrMoved = errors.New("booking belongs to another worker")
	// ErrNotBooked: there is no booking of this attempt.
	ErrNotBooked = errors.New("attempt is not booked")
	// ErrFreed: the attempt was here and ended, and its bytes were reported free; it begins on this node no more.
	ErrFreed = errors.New("attempt has ended on this node")
	// ErrBookClosed: the book was closed.
	ErrBookClosed = errors.New("book is closed")
)

// Segments is what the book asks of the spill folders; *handoff.Spill is one.
type Segments interface {
	// Lend takes a free segment out of the pool for an attempt.
	Lend(a job.Attempt, kind handoff.Kind, body bytesize.Bytes) (bool, error)
	// FreeBytes is what lies in the pool; Trim unlinks free segments until no more than keep are left.
	FreeBytes() (map[handoff.Kind]bytesize.Bytes, error)
	// Their memory is given back when free is called.
	Trim(kind handoff.Kind, keep bytesize.Bytes) (free func(), err error)
	// Lookup reads the header of an attempt's segment.
	Lookup(a job.Attempt) (handoff.Header, handoff.Kind, error)
	// Reclaim gives back what a dead attempt left.
	Reclaim(a job.Attempt) error
}

// BookConfig says where the book is and what it must not exceed.
type BookConfig struct {
	// Path is the spill folder. Required.
	Path string
	// Group is the number of the group that shares the book, −1 for none.
	Group int
	// Instance names this start of this worker, 1 … 64 letters, digits and hyphens. Required.
	Instance string
	// Role is "synth" or "gpu".
	Role string
	// Capacity is what the node has, asked at each Admit. Required.
	Capacity func() (ledger.Amounts, error)
	// Segments are the spill folders; nil when no segment is made here.
	Segments Segments
	// LockWait is how long to wait for another process to finish a change. Default 5 s.
	LockWait time.Duration
}

func (c *BookConfig) validate() error {
	var all []error
	if !filepath.IsAbs(c.Path) {
		all = append(all, fmt.Errorf("path %q is not absolute", c.Path))
	}
	if !instanceForm.MatchString(c.Instance) {
		all = append(all, fmt.Errorf("instance %q", c.Instance))
	}
	if c.Capacity == nil {
		all = append(all, errors.New("no capacity"))
	}
	if c.LockWait < 0 {
		all = append(all, fmt.Errorf("lock wait %s", c.LockWait))
	}
	return fault.As(fault.Invalid, errors.Join(all...))
}

// Book is a worker's hold on the node's book. All methods may be called from several goroutines; every change is one
// step for all processes of the node.
type Book struct {
	config BookConfig
	folder string
	owner  Owner
	proc   *os.File // its flock is the evidence that we live

	mu     sync.Mutex // flocks do not keep goroutines apart
	lock   *os.File
	cache  map[string]cached
	assets map[string]*heldAsset
	later  []func() // what a change leaves to be done without the lock
	tmp    atomic.Uint64

	owedMu sync.Mutex
	owed   map[job.Attempt]*Held // abandoned, still to be removed
}

const (
	bookFolder = "book"
	lockName   = "lock"
	procPrefix = "proc."
	// freedPrefix and an attempt name the mark that it ended here.
	freedPrefix = "freed."
	tmpPrefix   = ".tmp-"
)

// OpenBook opens the book of a spill folder, creates it when it is absent, and marks this worker as alive in it.
func OpenBook(config BookConfig) (*Book, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("configure book: %w", err)
	}
	if config.LockWait == 0 {
		config.LockWait = 5 * time.Second
	}
	process, err := handoff.Self()
	if err != nil {
		return nil, fmt.Errorf("open book: %w", err)
	}
	b := &Book{
		config: config, folder: filepath.Join(config.Path, bookFolder),
		owner: Owner{Instance: config.Instance, Role: config.Role, Process: process},
		cache: map[string]cached{}, assets: map[string]*heldAsset{}, owed: map[job.Attempt]*Held{},
	}
	if err := groupdir.Make(b.folder, config.Group); err != nil {
		return nil, fault.As(fault.Invalid, fmt.Errorf("open book: %w", err))
	}
	if b.lock, err = openShared(filepath.Join(b.folder, lockName), config.Group); err != nil {
		return nil, fmt.Errorf("open book: %w", err)
	}
	if err := b.locked(context.Background(), b.comeAlive); err != nil {
		return nil, errors.Join(fmt.Errorf("open book: %w", err), b.lock.Close())
	}
	return b, nil
}

// comeAlive locks the file that proves that this worker lives.
func (b *Book) comeAlive() error {
	proc, err := openShared(b.procPath(b.config.Instance), b.config.Group)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(proc.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fault.New(fault.Conflict, "instance %s is in use: %w", b.config.Instance, err), proc.Close())
	}
	b.proc = proc
	return nil
}

// openShared opens a lock file, so that every member of the group can.
func openShared(path string, group int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	info, err := f.Stat()
	if err == nil && group >= 0 && info.Mode().Perm() != 0o660 {
		// Another member may have made it; then it is as it should be or about to be.
		_, _ = f.Chown(-1, group), f.Chmod(0o660)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (b *Book) path(name string) string { return filepath.Join(b.folder, name) }

func (b *Book) procPath(instance string) string { return b.path(procPrefix + instance) }

// Close lets go: what this worker still has booked counts as a dead worker's from now on.
func (b *Book) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lock == nil {
		return nil
	}
	err := errors.Join(b.lock.Close(), b.proc.Close())
	for _, a := range b.assets {
		err = errors.Join(err, release(a.file))
	}
	b.lock, b.assets = nil, nil
	return err
}

// Evidence is the open file whose lock proves that this worker lives. A child process that holds memory on the worker's
// behalf (an engine) inherits it, so that the worker's bookings do not count as dead before the child is gone, too.
func (b *Book) Evidence() *os.File { return b.proc }

// locked runs a change while no other process of the node makes one, then, without the lock, what the change left for
// later: to free large segments takes longer than anybody should wait for the book.
func (b *Book) locked(ctx context.Context, change func() error) error {
	later, err := b.underLock(ctx, change)
	for _, do := range later {
		do()
	}
	return err
}

func (b *Book) underLock(ctx context.Context, change func() error) (later []func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lock == nil {
		return nil, ErrBookClosed
	}
	if err := b.acquire(ctx); err != nil {
		return nil, err
	}
	err = change()
	later, b.later = b.later, nil
	if unlockErr := unix.Flock(int(b.lock.Fd()), unix.LOCK_UN); unlockErr != nil {
		panic(fmt.Sprintf("agent: unlock book %s: %v", b.folder, unlockErr))
	}
	return later, err
}

// acquire takes the lock of the book. It is held for far less than a millisecond, unless its holder is stopped; then
// the error is of the veto's kind (Exhausted): the attempt is handed back at no cost.
func (b *Book) acquire(ctx context.Context) error {
	fd := int(b.lock.Fd())
	deadline := time.Now().Add(b.config.LockWait)
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("lock book %s: %w", b.folder, err)
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(deadline):
			return fault.New(fault.Exhausted, "lock book %s: another process has held it for %s", b.folder,
				b.config.LockWait)
		}
		time.Sleep(pause)
	}
}

// write replaces a file of the book: whoever reads it sees the old content or the new one.
func (b *Book) write(name string, content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	tmp := filepath.Join(b.folder, tmpPrefix+strconv.FormatUint(b.tmp.Add(1), 10)+"-"+b.config.Instance)
	err = b.writeFile(tmp, text)
	if err == nil {
		err = os.Rename(tmp, filepath.Join(b.folder, name))
	}
	if err == nil {
		return nil
	}
	if removeErr := os.Remove(tmp); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		err = fault.As(fault.Exhausted, err)
	}
	return fmt.Errorf("write %s: %w", name, err)
}

func (b *Book) writeFile(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if b.config.Group >= 0 {
		err = errors.Join(f.Chown(-1, b.config.Group), f.Chmod(0o640))
	}
	if err == nil {
		_, err = f.Write(text)
	}
	return errors.Join(err, f.Close())
}

// remove unlinks a file of the book.
func (b *Book) remove(name string) error {
	if err := os.Remove(filepath.Join(b.folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	delete(b.cache, name)
	return nil
}

// alive tells whether an owner lives: its lock is held. Without its lock file the process itself decides.
func (b *Book) alive(o Owner) bool {
	if o.Process.Boot != b.owner.Process.Boot {
		return false
	}
	if o.Instance == b.owner.Instance {
		return b.lock != nil
	}
	f, err := os.OpenFile(b.procPath(o.Instance), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return seen(o.Process, b.owner.Process)
	}
	defer release(f) //nolint:errcheck // it was only looked at
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	return err != nil // held, or not to be known: no evidence of death
}
