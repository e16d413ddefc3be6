package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/job"
)

// browserFolder has the script that drives the page.
const browserFolder = "browser"

// needBrowser fails a test that has no browser, except in short runs.
func needBrowser(t *testing.T) {
	t.Helper()
	_, node := exec.LookPath("node")
	_, browser := os.Stat("/usr/bin/chromium")
	_, library := os.Stat(filepath.Join(browserFolder, "node_modules", "playwright-core"))
	for what, err := range map[string]error{"node": node, "chromium": browser, "playwright-core": library} {
		switch {
		case err == nil:
		case testing.Short():
			t.Skipf("no %s, and this is a short run", what)
		default:
			t.Fatalf("%s is needed (make servers): %v", what, err)
		}
	}
}

// pictures is where the pages' pictures are left.
func pictures(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return t.TempDir()
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // for all to look at
		t.Fatal(err)
	}
	return folder
}

// An operator opens the page, follows a job until all its partitions are green, downloads the proof, and cancels
// another one with the token. A name full of markup stays text.
func TestOperatorFollowsAJobOnTheWebPage(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	const token, key = "0123456789abcdef0123456789abcdef", `<img src=x onerror="alert(1)">`
	r := newRack(t)
	tokenFile := filepath.Join(t.TempDir(), "token")
	r.check(os.WriteFile(tokenFile, []byte(token), 0o600))
	address := freePort(t)
	r.startCoordinator("web.listen="+address, "web.token_file="+tokenFile)
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU(r.hooked("pause@gpu.mid-proof#1", "pause@gpu.mid-proof#4")...)
	r.ready()

	seen := r.submit(1, 2, 3)
	r.reached("gpu.mid-proof#1")

	out := pictures(t)
	want, err := json.Marshal(map[string]any{
		"url": "http://" + address + "/", "out": out, "token": token, "tenant": job.MainTenant, "job": seen.id,
		"key": key, "partitions": 3,
	})
	r.check(err)
	browser := exec.CommandContext(t.Context(), "node", "look.mjs", string(want))
	browser.Dir = browserFolder
	var said bytes.Buffer
	browser.Stderr = &said
	lines, err := browser.StdoutPipe()
	r.check(err)
	orders, err := browser.StdinPipe()
	r.check(err)
	r.check(browser.Start())
	var held *client.Submitted
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		switch line := scanner.Text(); line {
		case "at work":
			r.letGo("gpu.mid-proof#1")
		case "done":
			held, err = r.client.Submit(t.Context(), request(key, 99, 4, 5))
			r.check(err)
			r.reached("gpu.mid-proof#4") // it can't end before the operator wants it to
			fmt.Fprintln(orders, held.Job)
		default:
			fmt.Fprintln(&said, line)
		}
	}
	if err := browser.Wait(); err != nil {
		t.Fatalf("the browser: %v\n%s", err, said.String())
	}
	record := r.waitEnd(seen)
	if record.State != job.Done {
		t.Fatalf("job is %s", record.State)
	}
	proof, err := r.client.Result(t.Context(), record)
	r.check(err)
	if downloaded := readText(filepath.Join(out, "proof")); downloaded != string(proof) {
		t.Errorf("the page's proof has %d bytes and is another one than the rack's of %d", len(downloaded), len(proof))
	}
	r.letGo("gpu.mid-proof#4")
	until(t, "the other job is cancelled", func() bool {
		s, err := r.client.Status(t.Context(), held.Job)
		return err == nil && s.Record.State == job.Cancelled
	})
}
