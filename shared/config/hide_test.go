package config_test

import (
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/config"
)

// addresses are ways to write an address that holds a secret.
func addresses() []string {
	return []string{
		"nats://user:secret@host:4222", "user:secret@host:4222", "secret@host", "NATS://user:secret@host:4222",
		"tls://secret@host:4222", "nats://user:sec/ret:secret@host", "nats://user:a@secret@host:4222", "user:secret@[::1]:1",
		"redis://:secret@host:6379/0", `nats://user:"secret@host`, "nats://user:secret \x1b@host", "rediss+x://a:secret@host",
		"nats://a:secret@host,nats://b:secret@host",
	}
}

func TestAddressesAreShownWithoutTheirSecrets(t *testing.T) {
	t.Parallel()
	for _, address := range addresses() {
		if got := config.HideUserInfo(address); strings.Contains(got, "secret") || strings.Contains(got, "user") ||
			!strings.Contains(got, "***@") || strings.Count(got, "@") != 1 {
			t.Errorf("%q: %q", address, got)
		}
	}
	for _, other := range []string{
		"", "nats://host:4222", "host:4222", "/run/redis@1/socket", "./a@b", "~/c@d.creds", "plain", "2KiB",
	} {
		if got := config.HideUserInfo(other); got != other {
			t.Errorf("%q: %q", other, got)
		}
	}
}

func TestTextsAreShownWithoutSecretsOfAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"connect to nats://u:secret@h:1, then tls://v:secret@k: no": "connect to nats://***@h:1, then tls://***@k: no",
		`parse "nats://u:se/cret@h:1": bad`:                         `parse "nats://***@h:1": bad`,
		`parse "nats://u:\"secret@h:1": bad`:                        `parse "nats://***@h:1": bad`,
		`open "a@b": no, at nats://h:1`:                             `open "a@b": no, at nats://h:1`,
		"HTTP://u:p@h":                                              "HTTP://***@h",
	} {
		if got := config.HideUserInfoIn(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Every way to give a setting, in the table and in what is said of a wrong one.
func TestNoSettingShowsASecretOfAnAddress(t *testing.T) {
	t.Parallel()
	for _, address := range addresses() {
		for name, from := range map[string]config.Sources{
			"flag":        {Set: []string{"node=" + address}},
			"environment": {Environ: []string{"PROOFRACK_NODE=" + address}},
			"list":        {Set: []string{"nats.urls=" + address}},
			"wrong flag":  {Set: []string{address}},
			"wrong value": {Set: []string{"slots=" + address}},
		} {
			table, err := config.Load(defaults(), from)
			var text strings.Builder
			switch {
			case err != nil:
				text.WriteString(err.Error())
			default:
				if err := table.Print(&text); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Contains(text.String(), "secret") {
				t.Errorf("%s of %q: %s", name, address, &text)
			}
		}
	}
}
