package api

import (
	"context"
	"encoding/json"

	"github.com/proofrack/proofrack/shared/wire"
)

// eventsBytesMax bounds the events of an answer; the oldest are left out.
const eventsBytesMax = 256 << 10

func (l *Leading) diagnose(
	ctx context.Context, _ string, q *wire.DiagnoseRequest,
) (*wire.DiagnoseReply, error) {
	reply := &wire.DiagnoseReply{Programs: l.Leader.Diagnose(q.ID), Events: l.events(ctx)}
	if l.Tell != nil {
		packed, err := l.Tell()
		if err != nil {
			return nil, err
		}
		reply.Leader = &wire.Diagnosis{
			ID: q.ID, Program: wire.Program{Role: "coordinator", Instance: l.Instance}, Packed: packed,
		}
	}
	return reply, nil
}

// events are the latest ones, as they are stored; those that can be had.
func (l *Leading) events(ctx context.Context) []json.RawMessage {
	log, err := l.Bus.Log(ctx, wire.StreamEvents)
	if err != nil {
		return nil
	}
	state, err := log.State(ctx)
	if err != nil || state.Messages == 0 {
		return nil
	}
	from := state.First
	if state.Last >= wire.DiagnosisEventsMax {
		from = max(from, state.Last-wire.DiagnosisEventsMax+1)
	}
	var all []json.RawMessage
	bytes := 0
	for len(all) < wire.DiagnosisEventsMax {
		m, err := log.Next(ctx, wire.AllEvents, from)
		if err != nil {
			break // that was the last
		}
		from = m.Sequence + 1
		if json.Valid(m.Data) {
			all, bytes = append(all, m.Data), bytes+len(m.Data)
		}
	}
	for bytes > eventsBytesMax {
		bytes, all = bytes-len(all[0]), all[1:]
	}
	return all
}
