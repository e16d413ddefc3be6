package host

import (
	"context"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/support"
	"github.com/proofrack/proofrack/shared/wire"
)

// tellWithin bounds the making and sending of a diagnosis.
const tellWithin = 10 * time.Second

// tell sends what the program tells about itself. It is sent at most once: who asked asks again.
func (h *Host) tell(record *support.Record, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), tellWithin)
	defer cancel()
	text := ""
	if h.page != nil {
		text = h.page()
	}
	packed, err := record.Report(text).Pack()
	if err == nil {
		var data []byte
		data, err = wire.Encode(&wire.Diagnosis{
			ID: id, Program: wire.Program{Node: h.Node, Role: h.config.Role, Instance: h.Instance}, Packed: packed,
		})
		if err == nil {
			err = h.Bus.Send(ctx, bus.Message{
				Subject: wire.ReportSubject(h.Node), Data: data, Header: map[string]string{wire.HeaderDiagnosis: id},
			})
		}
	}
	if err != nil {
		h.Log.Warn().Err(err).Msg("diagnosis was not sent")
	}
}
