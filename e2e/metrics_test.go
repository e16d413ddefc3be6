package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/metrics"
)

// scraped is a program whose metrics are read.
type scraped struct{ role, address string }

// page is what it shows, "" while it does not answer.
func (s scraped) page(t *testing.T) string {
	t.Helper()
	answer, err := (&http.Client{Timeout: time.Minute}).Get("http://" + s.address + "/metrics")
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Logf("%s: %d, %v", s.role, answer.StatusCode, err)
		return ""
	}
	return string(text)
}

// meteredRack is a rack of one node whose three programs show metrics.
func meteredRack(t *testing.T) (*rack, []scraped) {
	t.Helper()
	r := newRack(t)
	programs := []scraped{{"coordinator", freePort(t)}, {"synth", freePort(t)}, {"gpu", freePort(t)}}
	listen := func(i int) string { return "metrics.listen=" + programs[i].address }
	r.startCoordinator(listen(0))
	n := r.addNode("n1")
	n.startSynth(listen(1))
	n.startGPU(listen(2))
	r.ready()
	return r, programs
}

// has tells whether a page has a series of a metric.
func has(page string, name metrics.Name) bool {
	return regexp.MustCompile(`(?m)^` + string(name) + `(_count)?[{ ]`).MatchString(page)
}

// value adds up the series of a metric on a page, 0 while the page does not answer.
func (s scraped) value(t *testing.T, name metrics.Name) (sum float64) {
	t.Helper()
	lines := regexp.MustCompile(`(?m)^`+string(name)+`(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(s.page(t), -1)
	for _, line := range lines {
		number, err := strconv.ParseFloat(line[1], 64)
		if err != nil {
			t.Fatalf("%s: %v", line[0], err)
		}
		sum += number
	}
	return sum
}

// After a job every metric of the programs comes out of their pages under its name, but for those that need trouble, a
// GPU or a gateway; and so do all that the alert rules read.
func TestMetricsComeOutOfARackThatRuns(t *testing.T) {
	t.Parallel()
	r, programs := meteredRack(t)
	r.done(1, 2)
	of := map[metrics.Of][]string{
		metrics.OfProcess: {"coordinator", "synth", "gpu"}, metrics.OfWorkers: {"synth", "gpu"},
		metrics.OfGPU: {"gpu"}, metrics.OfNodes: {"coordinator"},
	}
	var missing []string
	pages := map[string]string{}
	defer func() {
		if t.Failed() {
			t.Log(missing)
		}
	}()
	seen := func(f metrics.Family) []string {
		var lacking []string
		for _, role := range of[f.Of] {
			if !has(pages[role], f.Name) {
				lacking = append(lacking, string(f.Name)+" of "+role)
			}
		}
		return lacking
	}
	// Of those that are not always there, a job brings these.
	after := []metrics.Name{
		metrics.JobSeconds, metrics.StageSeconds, metrics.Booked, metrics.Measured, metrics.AssetLoads,
		metrics.AssetLoadTime, metrics.EngineStarts, metrics.WrongProofs, metrics.LedgerAnswer, metrics.NodeAssetUsers,
	}
	until(t, "all metrics are there", func() bool {
		for _, p := range programs {
			pages[p.role] = p.page(t)
		}
		missing = nil
		for _, f := range metrics.Families() {
			switch {
			case f.Sometimes == "" || slices.Contains(after, f.Name):
				missing = append(missing, seen(f)...)
			}
		}
		if !has(pages["gpu"], metrics.FlightHigh) || !has(pages["synth"], metrics.FlightHigh) {
			missing = append(missing, "buffers")
		}
		return len(missing) == 0
	})
	for role, page := range pages {
		for _, bad := range []string{string(r.jobs[0].id), r.nodes[0].spill} {
			if strings.Contains(page, bad) {
				t.Errorf("the page of %s has %s in it", role, bad)
			}
		}
		if !strings.Contains(page, `c2_metrics_left_out{`) || strings.Contains(page, "c2_metrics_source_up 0") {
			t.Errorf("the page of %s is not complete", role)
		}
	}
	if !regexp.MustCompile(`(?m)^c2_cpu_seconds_total\{node="n1",of="engines",role="gpu"\} (0\.0*[1-9]|[1-9])`).
		MatchString(pages["gpu"]) {
		t.Error("engines took no processor time")
	}
	r.checkQuiet()
}

// hasty has alerts fire after a second in place of minutes: only what rules wait (for:) is less, and the hour after
// which a queue is old is two seconds.
func hasty(t *testing.T) string {
	t.Helper()
	rules, err := os.ReadFile("../deploy/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	const old = "c2_queue_oldest_seconds) > "
	if !strings.Contains(string(rules), old+"3600") {
		t.Fatal("the rules don't say when a queue is old")
	}
	quick := strings.Replace(string(rules), old+"3600", old+"2", 1)
	return regexp.MustCompile(`(?m)^( +for:) .*$`).ReplaceAllString(quick, "$1 1s")
}

// startPrometheus starts a real Prometheus that scrapes the programs and has the shipped rules; it gives its
// address.
func startPrometheus(t *testing.T, programs []scraped) string {
	t.Helper()
	if _, err := exec.LookPath("prometheus"); err != nil {
		if testing.Short() {
			t.Skip("no prometheus, and this is a short run")
		}
		t.Fatalf("prometheus is needed (make servers): %v", err)
	}
	dir, address := t.TempDir(), freePort(t)
	var targets []string
	for _, p := range programs {
		targets = append(targets, fmt.Sprintf("%q", p.address))
	}
	for name, text := range map[string]string{
		"rules.yml": hasty(t),
		"prometheus.yml": "global: {scrape_interval: 3s, scrape_timeout: 3s, evaluation_interval: 1s}\n" +
			"rule_files: [rules.yml]\nscrape_configs:\n  - job_name: proofrack\n    scrape_timeout: 3s\n" +
			"    static_configs:\n      - targets: [" + strings.Join(targets, ", ") + "]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, "prometheus", "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	p.await(t, address)
	return address
}

// fires are the alerts that fire, with what their labels say of where.
func fires(t *testing.T, address string) map[string]bool {
	t.Helper()
	answer, err := (&http.Client{Timeout: time.Minute}).Get("http://" + address + "/api/v1/alerts")
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	var reply struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	if json.NewDecoder(answer.Body).Decode(&reply) != nil {
		return nil
	}
	all := map[string]bool{}
	for _, a := range reply.Data.Alerts {
		if a.State == "firing" {
			for _, at := range []string{"", " " + a.Labels["instance"], " " + a.Labels["node"]} {
				all[a.Labels["alertname"]+at] = true
			}
		}
	}
	return all
}

// The alerts about programs, nodes and servers fire when those go, on a real Prometheus that reads a real rack. What
// provokes the others is in provoked.
func TestAlertsFireWhenPartsOfARackGo(t *testing.T) {
	t.Parallel()
	r, programs := meteredRack(t)
	address := startPrometheus(t, programs)
	var now map[string]bool
	awaits := func(what string, want ...string) {
		t.Helper()
		untilWithin(t, 2*patience, fmt.Sprintf("%s: %s", what, strings.Join(want, ", ")), func() bool {
			now = fires(t, address)
			return !slices.ContainsFunc(want, func(name string) bool { return !now[name] })
		})
	}
	r.done(1)
	untilWithin(t, 2*patience, "nothing is wrong", func() bool {
		now = fires(t, address)
		return now != nil && !now["ProofrackTargetDown"] && !now["ProofrackNoLeader"] && !now["ProofrackLedgerDown"] &&
			!now["ProofrackNATSDown"] && !now["ProofrackNodeGone"] && !now["ProofrackRackNotReady"]
	})
	n := r.nodes[0]
	n.synth.kill()
	n.gpu.kill()
	awaits("a host is gone", "ProofrackTargetDown "+programs[1].address, "ProofrackTargetDown "+programs[2].address,
		"ProofrackNodeGone n1", "ProofrackRackNotReady")
	r.redis.kill()
	awaits("the store is gone", "ProofrackLedgerDown")
	r.nats.kill()
	awaits("the servers are gone", "ProofrackNATSDown "+programs[0].address, "ProofrackNoLeader")
	r.coordinators[0].kill()
	awaits("all are gone", "ProofrackTargetDown "+programs[0].address, "ProofrackNoLeader")
}
