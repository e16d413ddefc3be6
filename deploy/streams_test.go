package deploy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/deploy/internal/keyring"
)

// TestShippedServerHoldsFiveTenants sets up the default streams for as many tenants as are said to fit: the server
// refuses what is over its max_file_store, used or not.
func TestShippedServerHoldsFiveTenants(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	b := s.dial(keyring.KindCoordinator, "c1")
	streams := coordinator.DefaultStreams()
	streams.Tenants = []string{"main", "b", "c", "d", "e"}
	check(t, b.Setup(t.Context(), streams.Topology()))
	streams.Tenants = append(streams.Tenants, "f", "g")
	if err := b.Setup(t.Context(), streams.Topology()); err == nil {
		t.Error("seven tenants fit, too: say so")
	}
	one, err := os.ReadFile("nats/server.conf")
	check(t, err)
	three, err := os.ReadFile("nats/server-cluster.conf")
	check(t, err)
	const limit = "max_file_store: 32GB"
	if !strings.Contains(string(one), limit) || !strings.Contains(string(three), limit) {
		t.Errorf("the servers' limits are not %q", limit)
	}
}
