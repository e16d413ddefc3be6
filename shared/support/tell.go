package support

import (
	"context"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/wire"
)

// Tell sends a report of a program to whoever asked for a diagnosis with that id, on the report subject of the
// program's node. It is sent at most once: who asked asks again.
func Tell(ctx context.Context, b bus.Bus, id string, program wire.Program, report *Report) error {
	packed, err := report.Pack()
	if err != nil {
		return err
	}
	data, err := wire.Encode(&wire.Diagnosis{ID: id, Program: program, Packed: packed})
	if err != nil {
		return err
	}
	return b.Send(ctx, bus.Message{
		Subject: wire.ReportSubject(program.Node), Data: data, Header: map[string]string{wire.HeaderDiagnosis: id},
	})
}
