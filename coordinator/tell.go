package coordinator

import (
	"context"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/support"
	"github.com/proofrack/proofrack/shared/wire"
)

// tell sends an operator what this coordinator tells about itself, whether it leads or not.
func (c *coordinator) tell(ctx context.Context, m bus.Message) {
	var q wire.DiagnoseRequest
	err := wire.Decode(m.Data, &q)
	if err == nil {
		program := wire.Program{Node: wire.NodeCoordinators, Role: "coordinator", Instance: c.instance}
		err = support.Tell(ctx, c.bus, q.ID, program, support.Of(ctx).Report(c.numbers()))
	}
	if err != nil {
		c.log.Warn().Err(err).Msg("the coordinator cannot tell about itself")
	}
}
