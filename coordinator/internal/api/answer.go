package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// endpoint makes an endpoint from a function over bodies. A request that is not understood is answered, too.
func endpoint[Q any, A any, QP interface {
	*Q
	wire.Body
}](name, subject string, handle func(ctx context.Context, subject string, q QP) (*A, error),
) bus.Endpoint {
	return bus.Endpoint{
		Name: name, Subject: subject,
		Handle: func(ctx context.Context, m bus.Message) (bus.Message, error) {
			q := QP(new(Q))
			if err := decode(m.Data, q); err != nil {
				return refusal(err)
			}
			answer, err := handle(ctx, m.Subject, q)
			if err != nil {
				return refusal(err)
			}
			return encode(answer)
		},
	}
}

// decode reads a request; no body at all is an empty one.
func decode(data []byte, q wire.Body) error {
	if len(data) == 0 {
		return q.Check()
	}
	return wire.Decode(data, q)
}

func refusal(err error) (bus.Message, error) {
	return encode(&wire.Reply{Fault: fault.ReportOf("", err)})
}

// encode writes an answer with the version of the wire.
func encode(answer any) (bus.Message, error) {
	body, ok := answer.(wire.Body)
	if !ok {
		return bus.Message{}, fmt.Errorf("encode answer %T: no body", answer)
	}
	data, err := wire.Encode(body)
	if fault.KindOf(err) == fault.Exhausted {
		data, err = wire.Encode(&wire.Reply{Fault: fault.ReportOf("answer", err)})
	}
	if err != nil {
		return bus.Message{}, err
	}
	return bus.Message{Data: data}, nil
}

// tenantOf is whose request it is.
func tenantOf(subject string) (job.Tenant, error) {
	t, err := job.ParseTenant(wire.Token(subject, 2))
	return t, fault.As(fault.Invalid, err)
}

// find gives a tenant's job. A job of somebody else does not exist for it. What this instance has not seen yet may have
// been accepted by another one a moment ago, so the bucket itself is asked.
func find(ctx context.Context, s *store.Store, tenant job.Tenant, id job.ID) (store.Job, error) {
	j, ok := s.Get(id)
	if !ok {
		var err error
		if j, err = s.Fetch(ctx, id); err == nil {
			ok = true
		} else if fault.KindOf(err) != fault.NotFound {
			return store.Job{}, err
		}
	}
	if ok && j.Record.Tenant == tenant {
		return j, nil
	}
	if at, lost := s.Lost(id); lost && !ok {
		return store.Job{}, fault.WithHint(
			fault.New(fault.NotFound, "record of job %s was lost: it went from the store at %s while the job was wanted",
				id, at.UTC().Format("2006-01-02T15:04:05Z")), "submit the job again")
	}
	return store.Job{}, fault.New(fault.NotFound, "no job %s", id)
}

// size is the length of a body as it is sent, about.
func size(v any) int {
	data, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(data)
}
