package deploy_test

import (
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// A host that loses its power closes no connection. As long as the server believes in it, every second request goes to
// the coordinator that was there, and nobody answers it.
func TestServersNoticeADeadHostSoon(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	for _, name := range []string{"nats/server.conf", "nats/server-cluster.conf"} {
		options, err := natsserver.ProcessConfigFile(s.conf(name))
		check(t, err)
		if options.PingInterval == 0 || options.MaxPingsOut == 0 {
			t.Errorf("%s: ping_interval and ping_max are not set: it takes minutes", name)
			continue
		}
		if notices := options.PingInterval * time.Duration(options.MaxPingsOut+1); notices > 45*time.Second {
			t.Errorf("%s: a dead host is noticed after %s", name, notices)
		}
	}
}
