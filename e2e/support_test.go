package e2e_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/config"
)

// unpack gives the files of an archive.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "proofrack-support/")] = string(text)
	}
}

// The bundle has settings, log and metrics of every program, what the rack says, and what happened; and no secret that
// was planted where programs meet one: in an address, in a credential's name, in what they log.
func TestSupportBundleHasAllAndNoSecret(t *testing.T) {
	t.Parallel()
	if config.HideUserInfo("nats://a:b@c") == "nats://a:b@c" {
		t.Fatal("addresses are not hidden")
	}
	const password, token = "hunter2-planted", "planted-t0ken"
	r := newRack(t)
	// The server asks for none, so a name and a password do no harm.
	secret := "nats.urls=" + strings.Replace(r.nats.url(), "nats://", "nats://ann:"+password+"@", 1)
	r.startCoordinator(secret)
	n := r.addNode("n1")
	n.startSynth(secret)
	n.startGPU(secret, "prove.cache="+filepath.Join(n.spill, "password="+token))
	r.ready()
	r.startCoordinator(secret) // it does not lead
	j := r.done(1)
	program, err := buildProofrack()
	r.check(err)
	var files map[string]string
	until(t, "a coordinator that does not lead has told, too", func() bool {
		out := filepath.Join(t.TempDir(), "bundle.tar.gz")
		cmd := exec.CommandContext(t.Context(), program, "support-bundle", "--json", "--out", out, "--server", r.nats.url(),
			"--timeout", "1m")
		var errs strings.Builder
		cmd.Stderr = &errs
		printed, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s%s", err, printed, errs.String())
		}
		files = unpack(t, out)
		return strings.Count(files["bundle.json"], `"role": "coordinator"`) == 2
	})
	for name, text := range files {
		for _, secret := range []string{password, token} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has a secret in it", name)
			}
		}
	}
	var index struct {
		Told    []struct{ Node, Role, Instance string }
		Silent  []any
		Missing map[string]string
	}
	if err := json.Unmarshal([]byte(files["bundle.json"]), &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Told) != 4 || len(index.Silent) != 0 || len(index.Missing) != 0 {
		t.Errorf("%+v", index)
	}
	for _, p := range index.Told {
		name := strings.TrimPrefix(strings.TrimPrefix(p.Node, "_coordinators")+"-"+p.Role, "-")
		folder := "programs/" + name + "-" + p.Instance[:8] + "/"
		for file, want := range map[string]string{
			"settings.txt": "nats.urls", "log.txt": " starts\"", "metrics.txt": "c2_build_info{", "about.json": `"build"`,
		} {
			if !strings.Contains(files[folder+file], want) {
				t.Errorf("%s%s lacks %q: %.300q", folder, file, want, files[folder+file])
			}
		}
	}
	for file, want := range map[string]string{
		"rack/nodes.json": `"n1"`, "rack/ledger.json": `"n1"`, "rack/flight.json": `"n1"`, "rack/jobs.json": string(j.id),
		"rack/events.json": string(j.id), "rack/dlq.json": "letters", "rack/assets.json": "nodes", "rack/memory.json": "{",
		"host/doctor.json": "checks",
	} {
		if !strings.Contains(files[file], want) {
			t.Errorf("%s lacks %q: %.300q", file, want, files[file])
		}
	}
	r.checkQuiet()
}
