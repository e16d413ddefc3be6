package groupdir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/proofrack/proofrack/shared/internal/groupdir"
)

func TestMake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		group int
		mode  fs.FileMode
	}{
		{"of one's own", -1, fs.ModeDir | 0o700},
		{"of a group", os.Getegid(), fs.ModeDir | fs.ModeSetgid | 0o770},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "made")
			if err := groupdir.Make(path, c.group); err != nil {
				t.Fatal(err)
			}
			if got := modeOf(t, path); got != c.mode {
				t.Errorf("mode %v, want %v", got, c.mode)
			}
		})
	}
}

func TestMakeLeavesWhatIsThere(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	if err := os.Chmod(path, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := groupdir.Make(path, os.Getegid()); err != nil {
		t.Fatal(err)
	}
	if got := modeOf(t, path); got != fs.ModeDir|0o750 {
		t.Errorf("mode %v of a folder that was there", got)
	}
}

func TestMakeNeedsTheFolderAbove(t *testing.T) {
	t.Parallel()
	err := groupdir.Make(filepath.Join(t.TempDir(), "absent", "made"), -1)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func modeOf(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}
