//go:build long

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/cli/internal/drill"
)

// Every fault of the drill on a rack in one process, which stands them all.
func TestLongDrillOnUp(t *testing.T) {
	folder := t.TempDir()
	spill := filepath.Join(folder, "spill")
	if err := os.Mkdir(spill, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", spill, "tmpfs", 0, "size=512m"); err != nil {
		t.Fatalf("mount a small tmpfs (needs root): %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(spill, syscall.MNT_DETACH) })
	binary := filepath.Join(folder, "proofrack")
	run := func(name string, args ...string) []byte {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = folder
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return out
	}
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	run(binary, "sector", "seal", "--sector", "2KiB", "--miner", "1000", "--sector-number", "4243", "--out", "sector")
	run(binary, "params", "generate", "--sector", "2KiB", "--seed", "drill", "--out", "params")

	startUp(t, binary, folder, filepath.Join(spill, "node"))
	args := []string{"drill"}
	for _, f := range drill.Faults() {
		args = append(args, f.Name)
	}
	out := run(
		binary,
		append(args, "--up", "rack", "--c1", "sector/c1.json", "--miner", "1000", "--sector-number", "4243",
			"--params", "params", "--lose-everything", "--yes", "--json")...)
	var result struct {
		Passed   bool
		Verdicts []drill.Verdict
	}
	if json.Unmarshal(out, &result) != nil || !result.Passed || len(result.Verdicts) != len(drill.Faults()) {
		t.Errorf("%s", out)
	}
	for _, v := range result.Verdicts {
		t.Logf(
			"%s: tried %t, %s s, %q, %q",
			v.Name,
			v.Tried,
			strconv.FormatFloat(v.Seconds, 'f', 1, 64),
			v.Evidence,
			v.Wrong,
		)
		if !v.Passed() {
			t.Errorf("%s: not passed: %q %q", v.Name, v.Reason, v.Wrong)
		}
	}
}

// startUp starts a rack in one process. A drill kills it and puts others in its place; the last one ends with the test.
func startUp(t *testing.T, binary, folder, spill string) {
	t.Helper()
	up := exec.Command(binary, "up", "--data", "rack", "--params", "params", "--listen", "127.0.0.1:0", "--spill", spill)
	up.Dir = folder
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = up.Wait() }()
	data := filepath.Join(folder, "rack")
	t.Cleanup(func() {
		if s, err := drill.ReadUp(data); err == nil {
			_ = syscall.Kill(s.PID, syscall.SIGKILL)
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if _, err := drill.ReadUp(data); err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
