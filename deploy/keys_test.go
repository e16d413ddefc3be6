package deploy_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/proofrack/proofrack/deploy/internal/keyring"
	"github.com/proofrack/proofrack/shared/fault"
)

// snapshot has every file's text.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		info, statErr := d.Info()
		secret := strings.Contains(string(text), "PRIVATE KEY") || strings.Contains(string(text), "SEED") ||
			strings.HasSuffix(path, ".nk") || strings.HasSuffix(path, ".password")
		if statErr != nil || secret && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", path, info.Mode(), statErr)
		}
		return err
	}))
	return all
}

// TestKeysAreAddedWithoutTouchingOthers runs keys.sh itself.
func TestKeysAreAddedWithoutTouchingOthers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "rack")
	built := ""
	keys := func(ok bool, args ...string) string {
		t.Helper()
		cmd := exec.Command("./keys.sh", args...)
		if built != "" { // else the script builds it anew each time
			cmd.Env = append(os.Environ(), "PATH="+built+":"+os.Getenv("PATH"))
		}
		out, err := cmd.CombinedOutput()
		if (err == nil) != ok {
			t.Fatalf("keys.sh %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	keys(true, "init", dir, "nats-1", "10.0.0.1")
	built = t.TempDir()
	if out, err := exec.Command("go", "build", "-o", built+"/rackkeys", "./rackkeys").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	keys(true, "node", dir, "n1", "cpu")
	before := snapshot(t, dir)
	if out := keys(true, "node", dir, "n2", "gpu-1a2b3c4d"); !strings.Contains(out, "node-n2.creds") ||
		!strings.Contains(out, "auth.conf") {
		t.Errorf("printed %s", out)
	}
	keys(true, "tenant", dir, "second")
	for _, wrong := range [][]string{
		{"init", dir, "nats-1"}, {"node", dir, "n1", "cpu"}, {"node", dir, "n3"}, {"node", dir, "../n3", "cpu"},
		{"node", dir, "a.b", "cpu"}, {"node", dir, "*", "cpu"}, {"node", dir, "n3", ">"}, {"tenant", dir, "main", "cpu"},
		{"king", dir, "x"}, {"revoke", dir, "tenant", "nobody"}, {"node", dir + "x", "n1", "cpu"},
		{"revoke", dir, "tenant", "../../tls/ca"},
	} {
		keys(false, wrong...)
	}
	after := snapshot(t, dir)
	for path, text := range before {
		if after[path] != text && filepath.Base(path) != "auth.conf" {
			t.Errorf("%s has changed", path)
		}
	}
	if len(after) != len(before)+4 { // a credential and an account each
		t.Errorf("%d files became %d", len(before), len(after))
	}
}

// TestClusterProfileIsReadByTheServer loads the three-server profile with the server's own reader.
func TestClusterProfileIsReadByTheServer(t *testing.T) {
	t.Parallel()
	s := &servers{t: t, dir: t.TempDir()}
	var err error
	s.ring, err = keyring.Create(s.dir, []string{"nats-1", "nats-2", "nats-3"})
	check(t, err)
	one, err := natsserver.ProcessConfigFile(s.conf("nats/server.conf"))
	check(t, err)
	three, err := natsserver.ProcessConfigFile(s.conf("nats/server-cluster.conf"))
	check(t, err)
	for name, o := range map[string]*natsserver.Options{"one": one, "three": three} {
		if !o.SyncAlways || o.TLSConfig == nil || len(o.TrustedOperators) != 1 || o.NoAuthUser != "" ||
			o.JetStreamMaxStore <= 0 {
			t.Errorf("%s: sync, TLS, authentication or store", name)
		}
	}
	if len(three.Routes) != 3 || three.Cluster.TLSConfig == nil || three.Cluster.TLSConfig.ClientCAs == nil {
		t.Errorf("routes %v", three.Routes)
	}
	if _, err := keyring.Open(t.TempDir()); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
}
