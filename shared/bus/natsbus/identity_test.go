package natsbus

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/proofrack/proofrack/shared/fault"
)

func must[T any](t testing.TB, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// credential makes a credentials file's text.
func credential(t testing.TB, name string, listen ...string) []byte {
	t.Helper()
	account, err := nkeys.CreateAccount()
	must(t, account, err)
	user, err := nkeys.CreateUser()
	must(t, user, err)
	id, err := user.PublicKey()
	must(t, id, err)
	claims := jwt.NewUserClaims(id)
	claims.Name = name
	claims.Sub.Allow = listen
	token, err := claims.Encode(account)
	must(t, token, err)
	seed, err := user.Seed()
	must(t, seed, err)
	text, err := jwt.FormatUserConfig(token, seed)
	return must(t, text, err)
}

func TestIdentityIsReadFromTheCredential(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		listen []string
		want   Identity
	}{
		{"tenant-main", []string{"c2.event.main.>", "_INBOX.tenant.main.>"},
			Identity{"tenant", "main", "_INBOX.tenant.main"}},
		{"node-a-b", []string{"_INBOX.node.a-b.>"}, Identity{"node", "a-b", "_INBOX.node.a-b"}},
		{"somebody", []string{"_INBOX.>"}, Identity{}},
		{"operator-x", []string{"_INBOX.*.x.>", "_INBOX.x", ">"}, Identity{Kind: "operator", Name: "x"}},
	} {
		file := filepath.Join(t.TempDir(), "x.creds")
		if err := os.WriteFile(file, credential(t, c.name, c.listen...), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadIdentity(file)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func TestWrongCredentialsFilesGiveOneClearLine(t *testing.T) {
	t.Parallel()
	good := string(credential(t, "tenant-main"))
	key := strings.Index(good, "-----BEGIN USER NKEY")
	for name, text := range map[string]string{
		"empty": "", "text": "hello\nworld\n", "no key": good[:key], "no token": good[key:],
		"damaged": strings.Replace(good, "eyJ", "eyK", 1), "huge": good + strings.Repeat("\n", credsBytesMax),
	} {
		file := filepath.Join(t.TempDir(), "x.creds")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadIdentity(file)
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := ReadIdentity("/nowhere")
	if fault.KindOf(err) != fault.Invalid || strings.Count(err.Error(), "/nowhere") != 1 {
		t.Error(err)
	}
}

func FuzzIdentity(f *testing.F) {
	f.Add(credential(f, "tenant-main", "_INBOX.tenant.main.>"))
	f.Add([]byte("-----BEGIN NATS USER JWT-----\ne30.e30.e30\n------END NATS USER JWT------\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		identity, err := parseIdentity(text)
		if err == nil && strings.ContainsAny(identity.InboxPrefix, "*> \r\n") {
			t.Errorf("%+v", identity)
		}
	})
}
