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
	var packed, data []byte
	if err == nil {
		packed, err = support.Of(ctx).Report(c.numbers()).Pack()
	}
	if err == nil {
		data, err = wire.Encode(&wire.Diagnosis{
			ID: q.ID, Packed: packed,
			Program: wire.Program{Node: wire.NodeCoordinators, Role: "coordinator", Instance: c.instance},
		})
	}
	if err == nil {
		err = c.bus.Send(ctx, bus.Message{
			Subject: wire.ReportSubject(wire.NodeCoordinators), Data: data,
			Header: map[string]string{wire.HeaderDiagnosis: q.ID},
		})
	}
	if err != nil {
		c.log.Warn().Err(err).Msg("the coordinator cannot tell about itself")
	}
}
