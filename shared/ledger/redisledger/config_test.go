package redisledger_test

import (
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/ledger/redisledger"
)

// An address with a password in it would be shown in errors and logs: it is refused, and not repeated.
func TestAddressesHoldNoPassword(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"127.0.0.1:6379": true, "[::1]:6379": true, "redis:6379": true, "/run/redis/redis.sock": true,
		"redis://user:geheim@host:6379": false, "user:geheim@host:6379": false, "host:6379/0": false,
	} {
		config := redisledger.DefaultConfig()
		config.Address = address
		err := config.Validate()
		if good != (err == nil) {
			t.Errorf("%s: %v", address, err)
		}
		if err != nil && (fault.KindOf(err) != fault.Invalid || strings.Contains(err.Error(), "geheim")) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
