package natsbus_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The server starts one for each process and never ends it.
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.init.0.func1"),
	)
}
