package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/service"
)

// unit reads a unit's settings; of those given several times the last.
func unit(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	settings := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			settings[key] = value
		}
	}
	return settings
}

func units(t *testing.T, role string) map[string]string {
	t.Helper()
	return unit(t, "systemd/proofrack-"+role+".service")
}

// stopsWithin is the longest that a program of ours takes to end after SIGTERM, by its defaults.
func stopsWithin() time.Duration {
	c := service.DefaultConfig()
	return c.DrainWithin + c.HandBackWithin + c.KillWithin
}

// TestB109UnitsGiveTimeToStop holds the units against the programs' own times.
func TestB109UnitsGiveTimeToStop(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"coordinator", "worker-synth", "worker-gpu"} {
		u := units(t, role)
		stop, err := time.ParseDuration(strings.Replace(u["TimeoutStopSec"], "min", "m", 1))
		check(t, err)
		if stop <= stopsWithin() {
			t.Errorf("%s: TimeoutStopSec is %s, the program takes up to %s", role, stop, stopsWithin())
		}
		if u["KillSignal"] != "SIGTERM" || u["KillMode"] != "mixed" ||
			!strings.HasPrefix(u["ExecStart"], "/usr/bin/"+role+" ") {
			t.Errorf("%s: the signal does not reach the program alone: %v", role, u)
		}
		if u["User"] != "proofrack" || u["NoNewPrivileges"] != "yes" {
			t.Errorf("%s runs as %q", role, u["User"])
		}
	}
}

// TestSynthesisDiesFirst holds the units' order for the out-of-memory killer.
func TestSynthesisDiesFirst(t *testing.T) {
	t.Parallel()
	score := func(role string) int {
		n, err := strconv.Atoi(units(t, role)["OOMScoreAdjust"])
		check(t, err)
		return n
	}
	order := []int{score("nats"), score("coordinator"), score("worker-gpu"), score("worker-synth")}
	if !slices.IsSorted(order) || order[2] >= order[3] || order[3] <= 0 {
		t.Errorf("scores of nats, coordinator, gpu, synth: %v", order)
	}
	if units(t, "worker-gpu")["LimitMEMLOCK"] != "infinity" {
		t.Error("the GPU worker may not lock memory")
	}
	mount := unit(t, "systemd/var-lib-proofrack-spill.mount")
	for _, option := range []string{"size=", "huge=always", "mode=0700", "uid=proofrack"} {
		if !strings.Contains(mount["Options"], option) {
			t.Errorf("the spill's mount has no %s", option)
		}
	}
}

// TestUnitsPassSystemd has systemd read them. Programs that are not installed here are stood in for by another.
func TestUnitsPassSystemd(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed; the units' own rules are tested all the same")
	}
	files, err := filepath.Glob("systemd/*.*")
	check(t, err)
	folder := t.TempDir()
	args := []string{"verify", "--man=no", "--recursive-errors=no"}
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(t, err)
		if strings.HasSuffix(file, ".sysusers") {
			continue
		}
		for _, program := range []string{
			"coordinator", "proofrack", "worker-synth", "worker-gpu", "nats-server", "redis-server",
		} {
			text = []byte(strings.Replace(string(text), "ExecStart=/usr/bin/"+program+" ", "ExecStart=/bin/true ", 1))
		}
		to := filepath.Join(folder, filepath.Base(file))
		check(t, os.WriteFile(to, text, 0o600))
		args = append(args, to)
	}
	if out, err := exec.Command(analyze, args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}
