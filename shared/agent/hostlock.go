package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// HostLock is held by the one process that speaks for its host. The kernel drops it when that process dies.
type HostLock struct {
	file *os.File
}

const hostLockName = "host.lock"

// TryHostLock takes the lock of a spill folder if nobody has it; nil when somebody does.
func TryHostLock(path string, group int) (*HostLock, error) {
	file, err := openShared(filepath.Join(path, hostLockName), group)
	if err != nil {
		return nil, fmt.Errorf("open host lock: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil:
		return &HostLock{file: file}, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, file.Close()
	}
	return nil, errors.Join(fmt.Errorf("take host lock %s: %w", file.Name(), err), file.Close())
}

// Unlock lets the next process take over.
func (l *HostLock) Unlock() error { return release(l.file) }
