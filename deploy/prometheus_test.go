package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/metrics"
)

// needs is a program of Debian's package prometheus.
func needs(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if testing.Short() {
			t.Skipf("no %s, and this is a short run", program)
		}
		t.Fatalf("%s is needed (make servers): %v", program, err)
	}
	return path
}

// Rules and configuration are what promtool takes, and every alert does what rules_test.yml says.
func TestAlertRulesFireWhenProvoked(t *testing.T) {
	t.Parallel()
	promtool := needs(t, "promtool")
	for _, args := range [][]string{
		{"check", "rules", "rules.yml"}, {"check", "config", "prometheus.yml"}, {"test", "rules", "rules_test.yml"},
	} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = "prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	return string(text)
}

// alerts are the names in the rules.
func alerts(t *testing.T) []string {
	t.Helper()
	var names []string
	name := regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)
	for _, m := range name.FindAllStringSubmatch(read(t, "prometheus/rules.yml"), -1) {
		names = append(names, m[1])
	}
	if len(names) < 20 {
		t.Fatalf("%d alerts are found", len(names))
	}
	return names
}

// Every alert is provoked by a case, and kept calm by another one that is near.
func TestEveryAlertHasItsCases(t *testing.T) {
	t.Parallel()
	cases := read(t, "prometheus/rules_test.yml")
	for _, name := range alerts(t) {
		for _, want := range []string{"- name: " + name + " fires\n", "- name: " + name + " stays calm\n"} {
			if strings.Count(cases, want) != 1 {
				t.Errorf("no case %q", strings.TrimSpace(want))
			}
		}
	}
}

// Every alert links to a page of the runbook that is there and speaks of it; no page is of no alert.
func TestEveryAlertHasAPageOfTheRunbook(t *testing.T) {
	t.Parallel()
	rules := read(t, "prometheus/rules.yml")
	link := regexp.MustCompile(`(?s)^(\w+)\n.*runbook_url: https://github.com/proofrack/proofrack/blob/main/(\S+)`)
	pages := map[string]bool{"README.md": true}
	var found [][]string
	for _, rule := range strings.Split(rules, "- alert: ")[1:] {
		if m := link.FindStringSubmatch(rule); m != nil {
			found = append(found, m)
		}
	}
	index := read(t, "../docs/runbook/README.md")
	for _, m := range found {
		page := read(t, filepath.Join("..", m[2]))
		for _, part := range []string{"# " + m[1] + "\n", "\n## Look\n", "\n## Do\n"} {
			if !strings.Contains(page, part) {
				t.Errorf("%s lacks %q", m[2], part)
			}
		}
		pages[filepath.Base(m[2])] = true
		if !strings.Contains(index, "["+m[1]+"]("+filepath.Base(m[2])+")") {
			t.Errorf("the index lacks %s", m[1])
		}
	}
	if want := len(alerts(t)); len(found) != want {
		t.Errorf("%d of %d alerts have a link", len(found), want)
	}
	files, err := os.ReadDir("../docs/runbook")
	check(t, err)
	for _, f := range files {
		if !pages[f.Name()] {
			t.Errorf("%s is of no alert", f.Name())
		}
	}
}

// named are the metrics that a text names, without what histograms and rules add.
func named(text string) []string {
	names := regexp.MustCompile(`\bc2_[a-z0-9_]+`).FindAllString(text, -1)
	for i := range names {
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			names[i] = strings.TrimSuffix(names[i], suffix)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// panels are the queries of all dashboards, by where they stand.
func panels(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("grafana/dashboards/*.json")
	check(t, err)
	queries, uids := map[string]string{}, map[string]bool{}
	for _, file := range files {
		var d struct {
			UID, Title string
			Templating struct {
				List []struct{ Name, Query string }
			}
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		check(t, json.Unmarshal([]byte(read(t, file)), &d))
		if d.UID == "" || uids[d.UID] || d.Title == "" {
			t.Errorf("%s: uid %q is missing or taken", file, d.UID)
		}
		uids[d.UID] = true
		for _, v := range d.Templating.List {
			if m := regexp.MustCompile(`^label_values\((.*), \w+\)$`).FindStringSubmatch(v.Query); m != nil {
				queries[file+": "+v.Name] = m[1]
			}
		}
		for _, p := range d.Panels {
			for i, target := range p.Targets {
				queries[fmt.Sprintf("%s: %s %d", file, p.Title, i)] = strings.ReplaceAll(target.Expr, "$node", ".*")
			}
		}
	}
	if len(files) < 3 || len(queries) < 50 {
		t.Fatalf("%d dashboards with %d queries", len(files), len(queries))
	}
	return queries
}

// Dashboards and rules name only metrics that the programs have; every metric of the programs is on a dashboard, in a
// rule, or is about the page itself.
func TestDashboardsAndRulesNameWhatThereIs(t *testing.T) {
	t.Parallel()
	text := read(t, "prometheus/rules.yml") + read(t, "prometheus/rules_test.yml")
	for _, query := range panels(t) {
		text += query + "\n"
	}
	known := map[string]bool{}
	for _, f := range metrics.Families() {
		known[string(f.Name)] = true
	}
	used := named(text)
	for _, name := range used {
		if !known[name] {
			t.Errorf("%s is no metric", name)
		}
	}
	spare := []metrics.Name{
		metrics.Build, metrics.Term, metrics.IntakePaused, metrics.DriftEvents, metrics.FlightRSS, metrics.FlightPieces,
	}
	for name := range known {
		if !slices.Contains(used, name) && !slices.Contains(spare, metrics.Name(name)) {
			t.Errorf("%s is on no dashboard and in no rule", name)
		}
	}
}

// prometheus is a real server with the shipped rules and nothing to scrape; it gives its address.
func prometheus(t *testing.T) string {
	t.Helper()
	program := needs(t, "prometheus")
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(read(t, "prometheus/rules.yml")), 0o600))
	config := filepath.Join(dir, "prometheus.yml")
	check(t, os.WriteFile(config, []byte("global: {evaluation_interval: 1s}\nrule_files: [rules.yml]\n"), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	address := l.Addr().String()
	check(t, l.Close())
	cmd := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return address
}

// query asks the server's API until it answers, for at most two minutes.
func query(t *testing.T, address, path string, out any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		if last = get(ctx, "http://"+address+path, out); last == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s: %v", path, last)
}

func get(ctx context.Context, url string, out any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%d: %s", answer.StatusCode, text)
	}
	return json.Unmarshal(text, out)
}

// A real Prometheus loads the rules and evaluates them, and takes every query of the dashboards.
func TestPrometheusTakesRulesAndDashboards(t *testing.T) {
	t.Parallel()
	address := prometheus(t)
	var reply struct {
		Data struct {
			Groups []struct {
				Rules []struct {
					Name, Type, Health, LastError string
				}
			}
		}
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		query(t, address, "/api/v1/rules", &reply)
		unknown := 0
		for _, g := range reply.Data.Groups {
			for _, r := range g.Rules {
				if r.Health == "unknown" {
					unknown++
				}
			}
		}
		if unknown == 0 && len(reply.Data.Groups) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d rules are not evaluated", unknown)
		}
	}
	var loaded []string
	for _, g := range reply.Data.Groups {
		for _, r := range g.Rules {
			if r.Health != "ok" {
				t.Errorf("rule %s is %s: %s", r.Name, r.Health, r.LastError)
			}
			if r.Type == "alerting" {
				loaded = append(loaded, r.Name)
			}
		}
	}
	if want := alerts(t); len(loaded) != len(want) {
		t.Errorf("%d alerts of %d are loaded", len(loaded), len(want))
	}
	for at, expr := range panels(t) {
		var answer struct{ Status string }
		if err := get(t.Context(), "http://"+address+"/api/v1/query?query="+url.QueryEscape(expr), &answer); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
}
