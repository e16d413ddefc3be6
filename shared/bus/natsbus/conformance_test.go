package natsbus_test

import (
	"testing"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/bustest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	server := embedded(t, nil)
	cfg := quick()
	cfg.PendingMax = 256
	bustest.Run(t, bustest.Harness{
		PendingMax: 256,
		Open:       func(t testing.TB, events bus.Events) bus.Bus { return dial(t, server, cfg, events) },
	})
}
