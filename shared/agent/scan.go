package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// cached is a file of the book as it was read. Every change makes a new file, so number and time tell whether it is
// still the same.
type cached struct {
	inode   uint64
	changed unix.Timespec
	booking *Booking // nil for an asset
	asset   ledger.Asset
}

// content is the whole book at one instant.
type content struct {
	bookings map[job.Attempt]*Booking
	assets   map[string]ledger.Asset // by file name
	halves   []string                // left by a process that died while it wrote
	procs    []string                // instances
	freed    []job.Attempt           // that ended here
	broken   []string                // entries that cannot be read
}

// entriesMax bounds the files of the book.
const entriesMax = 4*BookingsMax + 1024

// scan reads the book. It must run under the lock.
func (b *Book) scan() (*content, error) {
	dir, err := os.Open(b.folder)
	if err != nil {
		return nil, fmt.Errorf("read book: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(entriesMax)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read book: %w", err)
	}
	if len(names) == entriesMax {
		return nil, fault.New(fault.Exhausted, "read book %s: more than %d files", b.folder, entriesMax)
	}
	c := &content{bookings: map[job.Attempt]*Booking{}, assets: map[string]ledger.Asset{}}
	fresh := make(map[string]cached, len(names))
	for _, name := range names {
		switch {
		case name == lockName:
		case strings.HasPrefix(name, tmpPrefix):
			c.halves = append(c.halves, name)
		case strings.HasPrefix(name, procPrefix):
			c.procs = append(c.procs, strings.TrimPrefix(name, procPrefix))
		case strings.HasPrefix(name, freedPrefix):
			if a, err := job.ParseAttempt(strings.TrimPrefix(name, freedPrefix)); err == nil {
				c.freed = append(c.freed, a)
			}
		case b.isEntry(name):
			b.scanEntry(int(dir.Fd()), name, c, fresh)
		}
	}
	b.cache = fresh
	return c, nil
}

// isEntry tells bookings and assets from what is not the book's.
func (b *Book) isEntry(name string) bool {
	if _, known := b.cache[name]; known {
		return true
	}
	_, err := job.ParseAttempt(name)
	return err == nil || strings.HasPrefix(name, assetPrefix)
}

// scanEntry reads one booking or asset, from the cache if it has not changed.
func (b *Book) scanEntry(dir int, name string, c *content, fresh map[string]cached) {
	var stat unix.Stat_t
	if err := unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if !errors.Is(err, unix.ENOENT) {
			c.broken = append(c.broken, name)
		}
		return
	}
	entry, known := b.cache[name]
	if !known || entry.inode != stat.Ino || entry.changed != stat.Mtim {
		var err error
		if entry, err = b.read(name); err != nil {
			c.broken = append(c.broken, name)
			return
		}
		entry.inode, entry.changed = stat.Ino, stat.Mtim
	}
	fresh[name] = entry
	if entry.booking != nil {
		c.bookings[entry.booking.Attempt] = entry.booking
	} else {
		c.assets[name] = entry.asset
	}
}

func (b *Book) read(name string) (cached, error) {
	f, err := os.OpenFile(filepath.Join(b.folder, name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return cached{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, entryBytesMax))
	if err != nil {
		return cached{}, err
	}
	if strings.HasPrefix(name, assetPrefix) {
		asset, err := decodeAsset(name, text)
		return cached{asset: asset}, err
	}
	booking, err := decodeBooking(name, text)
	return cached{booking: booking}, err
}

// sum is what bookings and assets hold together.
func (c *content) sum() (ledger.Amounts, error) {
	sum := ledger.Amounts{}
	var all error
	add := func(pool ledger.Pool, amount bytesize.Bytes) { // in place: this is the longest part of an admission
		total, err := sum[pool].Add(amount)
		if err != nil {
			all = fault.As(fault.Corrupt, fmt.Errorf("sum up %s of the book: %w", pool, err))
		}
		sum[pool] = total
	}
	for _, booking := range c.bookings {
		for pool, amount := range booking.Amounts {
			add(pool, amount)
		}
	}
	for _, a := range c.assets {
		add(a.Pool, a.Bytes)
	}
	return sum, all
}

// whole refuses a book with entries that cannot be read: what they hold is not known.
func (c *content) whole() error {
	if len(c.broken) > 0 {
		return fault.New(fault.Corrupt, "book has %d unreadable entries, the first is %q", len(c.broken), c.broken[0])
	}
	return nil
}

// seen tells whether a process may live: its number says so, or it belongs to another number space.
func seen(p, self handoff.Process) bool {
	if p.Space != self.Space {
		return true
	}
	alive, err := inventory.NewHost().Alive(p.PID, p.Start)
	return err != nil || alive
}

// sealedHere tells whether an attempt's sealed segment lies in a spill folder.
func (b *Book) sealedHere(a job.Attempt) bool {
	if b.config.Segments == nil {
		return false
	}
	h, _, err := b.config.Segments.Lookup(a)
	return err == nil && h.State == handoff.Sealed && h.Writer.Boot == b.owner.Process.Boot
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
