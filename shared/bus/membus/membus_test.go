package membus_test

import (
	"testing"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/bustest"
	"github.com/proofrack/proofrack/shared/bus/membus"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	server := membus.New(membus.Config{PendingMax: 256})
	bustest.Run(t, bustest.Harness{
		PendingMax: 256,
		Open:       func(_ testing.TB, events bus.Events) bus.Bus { return server.Connect(events) },
	})
}
