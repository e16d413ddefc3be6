package natsbus_test

import (
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/fault"
)

// An error names the server, and nothing that stands before it: it can be a password.
func TestErrorsHoldNoSecretOfAnAddress(t *testing.T) {
	t.Parallel()
	for address, kind := range map[string]fault.Kind{
		"nats://user:secret@127.0.0.1:1":     fault.Transient,
		"user:secret@127.0.0.1:1":            fault.Transient,
		"nats://secret@127.0.0.1:1":          fault.Transient,
		"nats://user:sec@secret@127.0.0.1:1": fault.Transient,
		"nats://user:sec/ret@127.0.0.1:1":    fault.Invalid,
		"nats://user:secret @127.0.0.1:1":    fault.Invalid,
		"user:secret@[127.0.0.1:1":           fault.Invalid,
		"nats://user:%zzsecret@127.0.0.1:1":  fault.Invalid,
	} {
		config := natsbus.DefaultConfig()
		config.URLs = []string{address}
		_, err := natsbus.Connect(t.Context(), config)
		if fault.KindOf(err) != kind {
			t.Errorf("%s: %s: %v", address, fault.KindOf(err), err)
			continue
		}
		text := err.Error() + fault.ReportOf("", err).Hint
		for _, secret := range []string{"sec", "user"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %s", address, text)
			}
		}
		if !strings.Contains(text, "127.0.0.1:1") {
			t.Errorf("%s: the server is not named: %s", address, text)
		}
	}
}
