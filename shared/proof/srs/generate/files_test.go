package generate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/proof/srs"
)

// names are the files of a folder.
func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestToFolderMakesFilesThatOpen(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := knownAnswer()
	f, err := ToFolder(t.Context(), folder, c, FromSeed("a", c.ID()), Options{SectorSize: 2048})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"known-answer.params", "known-answer.vk", "parameters.json"}
	if diff := cmp.Diff(want, names(t, folder)); diff != "" {
		t.Error(diff)
	}
	o := srs.Options{DigestCache: filepath.Join(t.TempDir(), "digests.json")}
	p, err := srs.Open(t.Context(), f.ParamsPath, f.Counts, o)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Development || p.Digest != f.Digest {
		t.Errorf("development %v, digest %s, want true, %s", p.Development, p.Digest, f.Digest)
	}
	key, err := srs.OpenKey(t.Context(), f.KeyPath, f.Counts.IC, o)
	if err != nil {
		t.Fatal(err)
	}
	if !key.Development || !bytes.Equal(key.Append(nil), p.Key.Append(nil)) {
		t.Error("key is not the one of the parameters, or not marked")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	var manifest map[string]map[string]any
	text, err := os.ReadFile(filepath.Join(folder, srs.ManifestName))
	if err != nil || json.Unmarshal(text, &manifest) != nil {
		t.Fatalf("manifest %s: %v", text, err)
	}
	entry := map[string]any{"cid": "", "digest": f.Digest, "sector_size": 2048.0, "development": true}
	if diff := cmp.Diff(entry, manifest["known-answer.params"]); diff != "" {
		t.Error(diff)
	}
}

func TestToFolderIsDeterministic(t *testing.T) {
	t.Parallel()
	digests := map[string]bool{}
	for _, seed := range []string{"a", "a", "b"} {
		f, err := ToFolder(t.Context(), t.TempDir(), knownAnswer(), FromSeed(seed, "known-answer"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		digests[f.Digest] = true
	}
	if len(digests) != 2 {
		t.Errorf("two seeds, one of them twice, gave %d digests", len(digests))
	}
}

func TestToFolderReplacesDevelopmentFilesOnly(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := knownAnswer()
	if _, err := ToFolder(t.Context(), folder, c, FromSeed("a", c.ID()), Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := ToFolder(t.Context(), folder, c, FromSeed("b", c.ID()), Options{}); !errors.Is(err, ErrExists) {
		t.Errorf("without asking: got %v", err)
	}
	f, err := ToFolder(t.Context(), folder, c, exact(), Options{Replace: true})
	if err != nil || f.Digest != "4a917438cfcb64fd9ca342c9838a6b16" {
		t.Errorf("replaced by digest %s, %v", f.Digest, err)
	}
	if err := os.WriteFile(filepath.Join(folder, srs.ManifestName), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = ToFolder(t.Context(), folder, c, FromSeed("b", c.ID()), Options{Replace: true})
	if !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "not listed as development") {
		t.Errorf("files that are not listed: got %v", err)
	}
}

// Of several generators that start together one wins and the files fit together.
func TestGeneratorsThatMeetLeaveOneWholeSet(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := knownAnswer()
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = ToFolder(t.Context(), folder, c, FromSeed(fmt.Sprint(i), c.ID()), Options{}) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, ErrExists) {
			t.Error(err)
		}
	}
	if won != 1 || len(names(t, folder)) != 3 {
		t.Fatalf("%d winners, files %v", won, names(t, folder))
	}
	o := srs.Options{DigestCache: filepath.Join(t.TempDir(), "digests.json")}
	for _, name := range []string{"known-answer.params", "known-answer.vk"} {
		if _, err := srs.Check(t.Context(), filepath.Join(folder, name), srs.Counts{}, o); err != nil {
			t.Error(err)
		}
	}
}

func TestTooLittleSpaceIsSaidWithNumbers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		free int64
		text string
	}{
		"before the walk": {2000, "at least 3"},
		"after the walk":  {4059, "4060 bytes needed"},
	} {
		folder := t.TempDir()
		circuit := knownAnswer()
		tt := testTarget(folder, circuit)
		tt.freeBytes = func(string) (int64, error) { return c.free, nil }
		_, err := tt.generate(t.Context(), circuit, exact())
		if !errors.Is(err, ErrSpace) || !strings.Contains(err.Error(), c.text) ||
			!strings.Contains(err.Error(), fmt.Sprintf("%d are free", c.free)) {
			t.Errorf("%s: got %v", name, err)
		}
		if left := names(t, folder); len(left) != 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
	if free, err := freeBytes(t.TempDir()); err != nil || free <= 0 {
		t.Errorf("free space of a folder: %d, %v", free, err)
	}
}

func testTarget(folder string, c Circuit) *target {
	base := filepath.Join(folder, c.ParamsName())
	return &target{
		folder: folder, params: base + srs.ParamsExtension, key: base + srs.KeyExtension,
		options: Options{}.serialized(), freeBytes: freeBytes, wrap: func(w io.Writer) io.Writer { return w },
	}
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	for left := 0; left < 3000; left += 96 {
		folder := t.TempDir()
		c := knownAnswer()
		tt := testTarget(folder, c)
		tt.wrap = func(w io.Writer) io.Writer { return &failing{w, left, syscall.ENOSPC} }
		_, err := tt.generate(t.Context(), c, exact())
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("after %d bytes: got %v", left, err)
		}
		if files := names(t, folder); len(files) != 0 {
			t.Errorf("after %d bytes: left %v", left, files)
		}
	}
}

// limitVariable makes the test binary generate into the folder it names under a limit on the size of files.
const limitVariable = "PROOFRACK_TEST_LIMITED_FOLDER"

// limited is the child of TestFullDiskLeavesNothing; it tells whether this process is one.
func limited() bool {
	folder := os.Getenv(limitVariable)
	if folder == "" {
		return false
	}
	limit := unix.Rlimit{Cur: 2000, Max: 2000}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		fmt.Println("cannot limit:", err)
		os.Exit(3)
	}
	if _, err := ToFolder(context.Background(), folder, knownAnswer(), exact(), Options{}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return true
}

// The kernel itself refuses to let the file grow.
func TestFullDiskLeavesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), self)
	child.Env = append(os.Environ(), limitVariable+"="+folder)
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), syscall.EFBIG.Error()) {
		t.Errorf("got %v: %s", err, out)
	}
	if files := names(t, folder); len(files) != 0 {
		t.Errorf("left %v", files)
	}
}

func TestCancelledGenerationLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, stage := range Stages() {
		folder := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		o := Options{Progress: func(at Stage, _, _ int64) {
			if at == stage {
				cancel()
			}
		}}
		_, err := ToFolder(ctx, folder, knownAnswer(), exact(), o)
		cancel()
		// The last stage is over when it is cancelled: then the files may be whole.
		if stage == StageB2 && err == nil {
			continue
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled in %s: got %v", stage, err)
		}
		if files := names(t, folder); len(files) != 0 {
			t.Errorf("cancelled in %s: left %v", stage, files)
		}
	}
}

func TestFailedManifestLeavesNoParameters(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, srs.ManifestName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ToFolder(t.Context(), folder, knownAnswer(), exact(), Options{}); err == nil {
		t.Error("generated beside a broken manifest")
	}
	if diff := cmp.Diff([]string{srs.ManifestName}, names(t, folder)); diff != "" {
		t.Error(diff)
	}
}
