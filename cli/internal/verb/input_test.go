package verb

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestB02UnreadableFile opens a file that this user may not read. Root may read everything, so the thread gives up its
// rights over files for as long as the verb runs.
func TestB02UnreadableFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, f := range []string{filepath.Dir(folder), folder} {
		if err := os.Chmod(f, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(folder, "c1.json")
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0) // the answer is the former id, never an error
		defer syscall.RawSyscall(syscall.SYS_SETFSUID, 0, 0, 0)
	}
	var out, errs bytes.Buffer
	code := Run(context.Background(), []string{"inputs", path, "--miner", "1000"},
		Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	const want = "permission denied; make it readable for this user; or make a sample with"
	if code != 2 || !strings.Contains(errs.String(), want) || strings.Count(errs.String(), "\n") != 1 || out.Len() != 0 {
		t.Fatalf("exit code %d, standard error %q, standard output %q; want 2 and %q", code, &errs, &out, want)
	}
}

func TestParseSizeTakesPublishedSizesOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{
		"2KiB": 2 << 10, "8MiB": 8 << 20, "512MiB": 512 << 20, "32GiB": 32 << 30, "64GiB": 64 << 30,
		"2048": 2048, "34359738368": 32 << 30, "68719476736": 64 << 30,
	} {
		got, err := parseSize(text)
		if err != nil || uint64(got) != want {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"2GiB", "2147483648", "0", "-1", "9223372036854775808", "18446744073709551616", "3.4e10", `"34359738368"`, "",
		"32gib", "32 GiB", "32GiB ", "4KiB", "1GiB",
	} {
		_, err := parseSize(text)
		const want = "supported are 2KiB, 8MiB, 512MiB, 32GiB, 64GiB"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestFailureIsOneHarmlessLine(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	code := reportFailure(&errs, false, misuse("a\x1b[31m\nb\u2028c"))
	if code != 2 || errs.String() != "proofrack: a [31m; b; c\n" {
		t.Fatalf("got code %d, %q", code, &errs)
	}
}

func TestExitCodesDiffer(t *testing.T) {
	t.Parallel()
	seen := map[int]kind{}
	for _, k := range []kind{internalFault, usage, badInput, notVerified, noParams, badParams, noRoom, interrupted} {
		code := k.exitCode()
		if other, ok := seen[code]; ok || code == 0 {
			t.Errorf("%q and %q share exit code %d", k, other, code)
		}
		seen[code] = k
	}
}
