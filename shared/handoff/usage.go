package handoff

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
)

// Usage is who has how much of a spill folder's file system.
type Usage struct {
	Path          string         `json:"path"`
	Kind          Kind           `json:"kind"`
	CapacityBytes bytesize.Bytes `json:"capacity_bytes"`
	HasBytes      bytesize.Bytes `json:"has_bytes"`
	SegmentCount  int            `json:"segment_count"`
	SegmentBytes  bytesize.Bytes `json:"segment_bytes"`
	PoolCount     int            `json:"pool_count"`
	PoolBytes     bytesize.Bytes `json:"pool_bytes"`
	// ForeignBytes are in use and not ours.
	ForeignBytes bytesize.Bytes `json:"foreign_bytes"`
}

// foreignMax is how many foreign files are named, foreignDepth how deep they are looked for.
const (
	foreignMax   = 5
	foreignDepth = 4
)

// Usage looks at each folder. It costs a look at each segment; see Foreign for who has the rest.
func (s *Spill) Usage() ([]Usage, error) {
	var all []Usage
	for _, f := range s.folders {
		u, err := f.usage()
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

func (f *folder) usage() (Usage, error) {
	u := Usage{Path: f.path, Kind: f.kind}
	before, err := f.ours(&u)
	if err != nil {
		return u, err
	}
	if u.CapacityBytes, u.HasBytes, err = f.space(); err != nil {
		return u, err
	}
	after, err := f.ours(&u)
	if err != nil {
		return u, err
	}
	// Segments come and go meanwhile; one that was just removed must not be taken for somebody else's.
	u.ForeignBytes = max(0, u.CapacityBytes-u.HasBytes-max(before, after))
	return u, nil
}

// ours fills in what segments take, and sums it up.
func (f *folder) ours(u *Usage) (bytesize.Bytes, error) {
	var err error
	if u.SegmentCount, u.SegmentBytes, err = sizes(f.seg); err != nil {
		return 0, err
	}
	if u.PoolCount, u.PoolBytes, err = sizes(f.pool); err != nil {
		return 0, err
	}
	return u.SegmentBytes + u.PoolBytes, nil
}

// sizes counts the files of a directory and the space they take.
func sizes(dir *os.File) (int, bytesize.Bytes, error) {
	names, err := list(dir)
	if err != nil {
		return 0, 0, err
	}
	count, sum := 0, bytesize.Bytes(0)
	for _, name := range names {
		var stat unix.Stat_t
		if unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW) == nil {
			count++
			sum += bytesize.Bytes(stat.Blocks * 512)
		}
	}
	return count, sum, nil
}

// Foreign names the largest files of others on the file system of a kind's folder, if that is a tmpfs. It may look at
// many files.
func (s *Spill) Foreign(kind Kind) []Use {
	if f := s.folder(kind); f != nil {
		return f.foreign()
	}
	return nil
}

// foreign names the largest files on the same file system outside our folder. It looks at most at filesMax of them.
func (f *folder) foreign() []Use {
	if f.kind != SHM {
		return nil
	}
	root, dev := f.path, deviceOf(f.path)
	for parent := filepath.Dir(root); parent != root && deviceOf(parent) == dev; parent = filepath.Dir(parent) {
		root = parent
	}
	var found []Use
	seen := 0
	var walk func(path string, depth int)
	walk = func(path string, depth int) {
		entries, err := os.ReadDir(path)
		if err != nil {
			return
		}
		for _, e := range entries {
			if seen++; seen > filesMax {
				return
			}
			at := filepath.Join(path, e.Name())
			info, err := e.Info()
			if err != nil || at == f.seg.Name() || at == f.pool.Name() || statOf(info).Dev != dev {
				continue
			}
			switch stat := statOf(info); {
			case info.IsDir() && depth < foreignDepth:
				walk(at, depth+1)
			case stat.Blocks > 0:
				found = append(found, Use{Path: at, Bytes: bytesize.Bytes(stat.Blocks * 512), UID: stat.Uid})
			}
		}
	}
	walk(root, 0)
	slices.SortFunc(found, func(a, b Use) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Path, b.Path))
	})
	return found[:min(len(found), foreignMax)]
}

func deviceOf(path string) uint64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return statOf(info).Dev
}

// Check tells whether a segment with such a body could be made now, by what the file systems have and what the pool
// could give way: nil, or a *Shortage of the last folder that was asked.
func (s *Spill) Check(kind Kind, body bytesize.Bytes) error {
	folders, err := s.candidates(kind)
	if err != nil {
		return err
	}
	for _, f := range folders {
		u, usageErr := f.usage()
		if usageErr != nil {
			return usageErr
		}
		need := bytesize.Bytes(f.fileBytes(int64(body)))
		if u.HasBytes+u.PoolBytes >= need {
			return nil
		}
		err = &Shortage{
			Path: f.path, Kind: f.kind, NeedBytes: need, HasBytes: u.HasBytes + u.PoolBytes, Usage: u, Foreign: f.foreign(),
		}
	}
	return err
}

// shortage says that a file does not fit.
func (s *Spill) shortage(f *folder, size int64) error {
	short := &Shortage{Path: f.path, Kind: f.kind, NeedBytes: bytesize.Bytes(size)}
	u, err := f.usage()
	if err != nil {
		return errors.Join(short, err)
	}
	short.HasBytes, short.Usage, short.Foreign = u.HasBytes, u, f.foreign()
	return short
}
