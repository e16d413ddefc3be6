package deploy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/service"
)

// TestB109GatewayHasTimeToStop holds the gateway's unit against the drain time that its example shows, and against what
// its socket needs.
func TestB109GatewayHasTimeToStop(t *testing.T) {
	t.Parallel()
	u := units(t, "gateway")
	text, err := os.ReadFile("examples/gateway.toml")
	check(t, err)
	said := regexp.MustCompile(`(?m)^#drain_within = "(.+)"$`).FindSubmatch(text)
	if said == nil {
		t.Fatal("the example has no drain_within")
	}
	drain, err := time.ParseDuration(string(said[1]))
	check(t, err)
	c := service.DefaultConfig()
	stop, err := time.ParseDuration(u["TimeoutStopSec"] + "s")
	check(t, err)
	if longest := drain + c.HandBackWithin + c.KillWithin; stop <= longest {
		t.Errorf("TimeoutStopSec is %s, the program takes up to %s", stop, longest)
	}
	if u["KillSignal"] != "SIGTERM" || u["KillMode"] != "mixed" ||
		!strings.HasPrefix(u["ExecStart"], "/usr/bin/proofrack gateway ") {
		t.Errorf("the signal does not reach the program alone: %v", u)
	}
	listen := regexp.MustCompile(`(?m)^#listen = "unix:///run/(.+)/gateway.sock"$`).FindSubmatch(text)
	if listen == nil || u["RuntimeDirectory"] != string(listen[1]) || u["RuntimeDirectoryMode"] != "0750" {
		t.Errorf("the folder of the socket is %q, %s", u["RuntimeDirectory"], u["RuntimeDirectoryMode"])
	}
	if u["User"] != "proofrack" || u["NoNewPrivileges"] != "yes" {
		t.Errorf("it runs as %q", u["User"])
	}
}

// The gateway's container shows its socket to the host, and speaks for one tenant.
func TestGatewayOfComposeReachesTheHost(t *testing.T) {
	t.Parallel()
	s := composed(t).Services["gateway"]
	listen := strings.TrimPrefix(*s.Environment["PROOFRACK_GATEWAY_LISTEN"], "unix://")
	shown := false
	for _, v := range s.Volumes {
		shown = shown || v.Type == "bind" && strings.HasPrefix(listen, v.Target+"/") && !v.ReadOnly
	}
	if !shown || len(s.Ports) > 0 {
		t.Errorf("socket %s is not on the host: %+v", listen, s.Volumes)
	}
	if len(s.Command) == 0 || s.Command[0] != "gateway" || s.Build.Args["PACKAGE"] == nil ||
		*s.Build.Args["PACKAGE"] != "./cli" {
		t.Errorf("it runs %v of %v", s.Command, s.Build.Args)
	}
}
