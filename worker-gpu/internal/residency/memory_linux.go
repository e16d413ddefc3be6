package residency

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/fault"
)

// makeImage makes memory with a descriptor, all of it at once (no SIGBUS later), has it filled and seals it.
func makeImage(id string, size int64, fill func(*os.File) error) (_ *os.File, err error) {
	fd, err := unix.MemfdCreate("proofrack-srs-"+id, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fault.As(fault.Exhausted, fmt.Errorf("make image of circuit %s: %w", id, err))
	}
	file := os.NewFile(uintptr(fd), "image of circuit "+id)
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	if err := unix.Fallocate(fd, 0, 0, size); err != nil {
		return nil, fault.As(fault.Exhausted, fmt.Errorf("make image of circuit %s of %d bytes: %w", id, size, err))
	}
	if err := fill(file); err != nil {
		return nil, err
	}
	// An engine that still maps it for writing makes this fail.
	const all = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, all); err != nil {
		return nil, fault.As(fault.Device, fmt.Errorf("seal image of circuit %s: %w", id, err))
	}
	return file, nil
}
