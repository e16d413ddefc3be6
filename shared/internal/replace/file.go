package replace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// File writes a small file under a temporary name beside its own, syncs it and renames it, so that readers see
// the old content or the new one and an error leaves the old one and nothing else.
func File(path string, content []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("create temporary file for %s: %w", path, err)
	}
	err = fillFile(f, content, mode)
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("replace %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}

// fillFile writes, syncs and closes a file.
func fillFile(f *os.File, content []byte, mode os.FileMode) error {
	_, err := f.Write(content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
