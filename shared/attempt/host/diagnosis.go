package host

import (
	"context"
	"time"

	"github.com/proofrack/proofrack/shared/support"
	"github.com/proofrack/proofrack/shared/wire"
)

// tellWithin bounds the making and sending of a diagnosis.
const tellWithin = 10 * time.Second

// tell sends what the program tells about itself.
func (h *Host) tell(record *support.Record, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), tellWithin)
	defer cancel()
	text := ""
	if h.page != nil {
		text = h.page()
	}
	program := wire.Program{Node: h.Node, Role: h.config.Role, Instance: h.Instance}
	err := support.Tell(ctx, h.Bus, id, program, record.Report(text))
	if err != nil {
		h.Log.Warn().Err(err).Msg("diagnosis was not sent")
	}
}
