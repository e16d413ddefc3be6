package e2e_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// provoked names the test that provokes each alert: real programs get into the trouble, and a real Prometheus, which
// has the shipped rules and reads the programs' own pages, says so. Those named TestLong have the build tag long.
func provoked() map[string][]string {
	return map[string][]string{
		"TestAlertsFireWhenPartsOfARackGo": {
			"TargetDown", "NoLeader", "RackNotReady", "LedgerDown", "NATSDown", "NodeGone",
		},
		"TestLongAlertsOfADeviceThatLies": {
			"WrongProofs", "DeviceFaults", "JobsFail", "DeviceQuarantined", "DeviceUnusable",
		},
		"TestLongAlertsOfEnginesThatDie":  {"EngineRestarts", "RackHalted"},
		"TestLongAlertsOfFrozenWorkers":   {"Limbo", "AttemptsLost"},
		"TestLongAlertsOfMemory":          memoryAlerts(),
		"TestLongAlertsOfProgramsAndWays": programAlerts(),
	}
}

func memoryAlerts() []string {
	return []string{
		"BookDisagrees", "BufferLeak", "WaitsForMemory", "QueueOld", "SizeDrift", "Overbooked", "ResultsUnsent",
	}
}

func programAlerts() []string {
	return []string{
		"LoadsFail", "CheckFails", "NodeNotReady", "WaitsForNothing", "GPULost", "MetricsIncomplete", "UpstreamDown",
		"SpansDropped", "ClockOffset", "MessagesDropped",
	}
}

// Every alert is provoked on a real rack, but for those of which the runbook says why that cannot be done.
func TestEveryAlertIsProvokedOrTheRunbookSaysWhyNot(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, names := range provoked() {
		listed = append(listed, names...)
	}
	_, note, ok := strings.Cut(readText("../docs/runbook/README.md"), "\n## Not provoked\n")
	if !ok {
		t.Fatal("the runbook has no list of alerts that are not provoked")
	}
	for _, m := range regexp.MustCompile(`(?m)^\| Proofrack(\w+) \| \S`).FindAllStringSubmatch(note, -1) {
		listed = append(listed, m[1])
	}
	var want []string
	for _, m := range regexp.MustCompile(`- alert: Proofrack(\w+)\n`).FindAllStringSubmatch(
		readText("../deploy/prometheus/rules.yml"), -1) {
		want = append(want, m[1])
	}
	slices.Sort(listed)
	slices.Sort(want)
	if len(want) < 30 || !slices.Equal(listed, want) {
		t.Errorf("listed are\n%s\nthe rules have\n%s", strings.Join(listed, " "), strings.Join(want, " "))
	}
	files := readText("metrics_test.go") + readText("alerts_long_test.go") + readText("alerts_ways_long_test.go")
	for name := range provoked() {
		if !strings.Contains(files, "func "+name+"(t *testing.T) {") {
			t.Errorf("no %s", name)
		}
	}
}
