package gateway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/proofrack/proofrack/shared/config"
	"github.com/proofrack/proofrack/shared/config/configtest"
	"github.com/proofrack/proofrack/shared/job"
)

// TestExampleIsTheProgramsOwn compares the shipped example with what the program prints. REWRITE=1 writes it.
func TestExampleIsTheProgramsOwn(t *testing.T) {
	t.Parallel()
	configtest.Example(t, "../../../deploy/examples/gateway.toml", "Gateway", DefaultConfig)
}

// The environment that the compose file gives its gateway is one that the program takes.
func TestComposeSettingsAreTheProgramsOwn(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docker-compose.yml")
	check(t, err)
	var environ []string
	_, service, ok := strings.Cut(string(text), "\n  gateway:\n")
	if !ok {
		t.Fatal("the compose file has no gateway")
	}
	for line := range strings.Lines(service) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if ok && strings.HasPrefix(key, config.EnvPrefix) {
			environ = append(environ, key+"="+strings.Trim(value, `"`))
		}
		if strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   ") && strings.TrimSpace(line) != "" ||
			strings.HasPrefix(line, "volumes:") {
			break // the next service, or the end of all
		}
	}
	c := DefaultConfig()
	_, err = config.Load(&c, config.Sources{File: "../../../deploy/examples/gateway.toml", Environ: environ})
	check(t, err)
	if !strings.HasPrefix(c.Gateway.Listen, "unix:///run/proofrack/") ||
		c.NATS.CredsFile != "/etc/proofrack/creds/tenant-main.creds" || c.HTTP.Listen != "0.0.0.0:9100" {
		t.Errorf("%+v", c)
	}
}

// credsOf makes a credentials file as keys.sh does.
func credsOf(t *testing.T, kind, name string) string {
	t.Helper()
	account, err := nkeys.CreateAccount()
	check(t, err)
	user, err := nkeys.CreateUser()
	check(t, err)
	public, err := user.PublicKey()
	check(t, err)
	claims := jwt.NewUserClaims(public)
	claims.Name = kind + "-" + name
	token, err := claims.Encode(account)
	check(t, err)
	seed, err := user.Seed()
	check(t, err)
	text, err := jwt.FormatUserConfig(token, seed)
	check(t, err)
	path := filepath.Join(t.TempDir(), "creds")
	check(t, os.WriteFile(path, text, 0o600))
	return path
}

// The credential says whose jobs they are; one of somebody else, or that contradicts, is refused before anything is
// done.
func TestTenantIsTheCredentials(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, of, named string
		want            job.Tenant
		refused         string
	}{
		"no credential":             {want: job.MainTenant},
		"no credential, but a name": {named: "t9", want: "t9"},
		"credential":                {kind: "tenant", of: "t1", want: "t1"},
		"both":                      {kind: "tenant", of: "t1", named: "t1", want: "t1"},
		"both, different":           {kind: "tenant", of: "t1", named: "t2", refused: "gateway.tenant"},
		"an operator's":             {kind: "operator", of: "ann", refused: "a tenant's credential"},
		"a node's":                  {kind: "node", of: "n1", refused: "a tenant's credential"},
	} {
		config := DefaultConfig()
		config.Gateway.Tenant = c.named
		if c.kind != "" {
			config.NATS.CredsFile = credsOf(t, c.kind, c.of)
		}
		got, err := config.tenant()
		switch {
		case c.refused == "" && (err != nil || got != c.want):
			t.Errorf("%s: %s, %v", name, got, err)
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	none := DefaultConfig()
	none.NATS.CredsFile = filepath.Join(t.TempDir(), "none")
	if _, err := none.tenant(); err == nil {
		t.Error("a file that is not there is believed")
	}
}
