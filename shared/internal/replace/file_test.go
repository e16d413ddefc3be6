package replace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/proofrack/proofrack/shared/internal/replace"
)

func TestReplaceFileLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	target := filepath.Join(folder, "target")
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := replace.File(target, []byte("x"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Errorf("folder holds %v, %v", entries, err)
	}
}
