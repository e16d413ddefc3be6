package handoff

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// Spill is the node's spill folders. Its methods may be called from several goroutines and processes at once.
type Spill struct {
	config  Config
	self    Process
	folders []*folder // in memory first
}

// New opens the spill folders and creates what is missing. It takes nothing and removes nothing, so it succeeds on a
// full file system, too: ask Check. Errors are of kind Invalid: wrong configuration or no right to write.
func New(config Config) (*Spill, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configure handoff: %w", err)
	}
	self, err := Self()
	if err != nil {
		return nil, err
	}
	s := &Spill{config: config, self: self}
	for _, path := range []string{config.Path, config.DiskPath} {
		if path == "" {
			continue
		}
		f, err := openFolder(path, config.Group)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.folders = append(s.folders, f)
	}
	if len(s.folders) == 2 && s.folders[0].kind == s.folders[1].kind {
		kind := s.folders[0].kind
		return nil, errors.Join(fault.New(fault.Invalid,
			"spill folders %s and %s are both %s: a second one must be a disk beside a tmpfs", config.Path,
			config.DiskPath, kind), s.Close())
	}
	return s, nil
}

// Close closes the folders; segments that are open stay usable.
func (s *Spill) Close() error {
	var err error
	for _, f := range s.folders {
		err = errors.Join(err, f.close())
	}
	return err
}

// Path is the first spill folder.
func (s *Spill) Path() string { return s.folders[0].path }

// Kinds are the kinds of segments that can be made, the preferred one first.
func (s *Spill) Kinds() []Kind {
	kinds := make([]Kind, 0, len(s.folders))
	for _, f := range s.folders {
		kinds = append(kinds, f.kind)
	}
	return kinds
}

// PageBytes is the page size that segments of a kind get: 4 KiB, or 2 MiB on a tmpfs with huge pages; 0 when there is
// no folder of that kind.
func (s *Spill) PageBytes(kind Kind) bytesize.Bytes {
	if f := s.folder(kind); f != nil {
		return bytesize.Bytes(f.pageBytes)
	}
	return 0
}

// FileBytes is how much space a segment with such a body takes in its folder: what is to be booked. Without a folder of
// that kind it is 0.
func (s *Spill) FileBytes(kind Kind, body bytesize.Bytes) bytesize.Bytes {
	if f := s.folder(kind); f != nil {
		return bytesize.Bytes(f.fileBytes(int64(body)))
	}
	return 0
}

// folder is the first folder of a kind, or the first of all for "".
func (s *Spill) folder(kind Kind) *folder {
	for _, f := range s.folders {
		if kind == "" || f.kind == kind {
			return f
		}
	}
	return nil
}

// candidates are the folders that a kind allows.
func (s *Spill) candidates(kind Kind) ([]*folder, error) {
	if kind == "" {
		return s.folders, nil
	}
	if f := s.folder(kind); f != nil {
		return []*folder{f}, nil
	}
	return nil, fault.New(fault.Invalid, "no spill folder of kind %q is configured", kind)
}

func statOf(info os.FileInfo) *syscall.Stat_t {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		panic(fmt.Sprintf("handoff: status of %s is a %T", info.Name(), info.Sys()))
	}
	return stat
}
