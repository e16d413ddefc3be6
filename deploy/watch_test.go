package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
)

// watching is the profile with Prometheus and Grafana.
const watching = "watch"

// mounted is what a service has at a path, on the host.
func mounted(s types.ServiceConfig, target string) string {
	for _, v := range s.Volumes {
		if v.Target == target && v.Type == types.VolumeTypeBind && v.ReadOnly {
			return v.Source
		}
	}
	return ""
}

// found is the one match of a pattern's group in a text.
func found(t *testing.T, text, pattern string) string {
	t.Helper()
	all := regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1)
	if len(all) != 1 {
		t.Fatalf("%d times %s", len(all), pattern)
	}
	return all[0][1]
}

// Prometheus has the shipped configuration and rules and asks every program of ours at its port.
func TestProfileHasPrometheusReadEveryProgram(t *testing.T) {
	t.Parallel()
	p := composed(t, watching)
	s := p.Services["prometheus"]
	file := "/etc/prometheus/prometheus.yml"
	if !slices.Contains(s.Command, "--config.file="+file) {
		t.Errorf("it reads %v", s.Command)
	}
	config := read(t, mounted(s, file))
	if config != read(t, "prometheus/prometheus.yml") {
		t.Error("it has another configuration")
	}
	rules := filepath.Join(filepath.Dir(file), found(t, config, `(?m)^rule_files: \[([\w.]+)\]$`))
	if read(t, mounted(s, rules)) != read(t, "prometheus/rules.yml") {
		t.Error("it has other rules")
	}
	var targets []string
	for _, target := range strings.Split(found(t, config, `targets: \[(.*)\]`), ", ") {
		targets = append(targets, strings.Trim(target, `"`))
	}
	var want []string
	for _, name := range ours() {
		listen := *p.Services[name].Environment["PROOFRACK_HTTP_LISTEN"]
		port := strings.TrimPrefix(listen, "0.0.0.0:")
		want = append(want, name+":"+port)
		if !slices.Contains(p.Services[name].Expose, port) {
			t.Errorf("%s does not show %s", name, port)
		}
	}
	slices.Sort(targets)
	if !slices.Equal(targets, want) {
		t.Errorf("it asks %v, ours are %v", targets, want)
	}
	bounded := func(arg string) bool { return strings.HasPrefix(arg, "--storage.tsdb.retention.size=") }
	if !slices.ContainsFunc(s.Command, bounded) {
		t.Error("what it keeps has no bound")
	}
}

// Grafana is provisioned with the shipped dashboards, and asks the Prometheus of the profile. Nobody from elsewhere
// reaches either of them, and nobody can log in.
func TestProfileHasGrafanaShowTheDashboards(t *testing.T) {
	t.Parallel()
	p := composed(t, watching)
	s := p.Services["grafana"]
	provisioning := mounted(s, "/etc/grafana/provisioning")
	source := read(t, filepath.Join(provisioning, "datasources/proofrack.yml"))
	if url := found(t, source, `(?m)^ +url: (\S+)$`); url != "http://prometheus:9090" {
		t.Errorf("it asks %s", url)
	}
	folder := mounted(s, found(t, read(t, filepath.Join(provisioning, "dashboards/proofrack.yml")), `(?m)^ +path: (\S+)$`))
	shipped, err := os.ReadDir("grafana/dashboards")
	check(t, err)
	for _, f := range shipped {
		if read(t, filepath.Join(folder, f.Name())) != read(t, filepath.Join("grafana/dashboards", f.Name())) {
			t.Errorf("it has another %s", f.Name())
		}
	}
	if len(shipped) < 3 {
		t.Errorf("%d dashboards", len(shipped))
	}
	for _, name := range []string{"prometheus", "grafana"} {
		for _, port := range p.Services[name].Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s listens on %q", name, port.HostIP)
			}
		}
		for _, v := range p.Services[name].Volumes {
			if _, err := os.Stat(v.Source); v.Type == types.VolumeTypeBind && err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, ok := p.Volumes[v.Source]; v.Type == types.VolumeTypeVolume && !ok {
				t.Errorf("%s: no volume %s", name, v.Source)
			}
		}
	}
	for key, want := range map[string]string{
		"GF_AUTH_DISABLE_LOGIN_FORM": "true", "GF_AUTH_BASIC_ENABLED": "false", "GF_AUTH_ANONYMOUS_ORG_ROLE": "Viewer",
	} {
		if got := s.Environment[key]; got == nil || *got != want {
			t.Errorf("%s is not %s", key, want)
		}
	}
}
