package api

import (
	"context"
	"fmt"
	"strings"

	"github.com/proofrack/proofrack/coordinator/internal/dispatch"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// Leading is what only the leader serves.
type Leading struct {
	Store    *store.Store
	Leader   *dispatch.Leader
	Instance string
	Bus      bus.Bus
	// Tell gives what the coordinator tells about itself, packed; nil for nothing.
	Tell func() ([]byte, error)
}

// Service gives the endpoints.
func (l *Leading) Service() bus.Service {
	return bus.Service{
		Name: "c2-leader", Version: Version, Description: "change jobs, and look into the leader's books",
		Endpoints: []bus.Endpoint{
			endpoint("cancel", "c2."+wire.VerbCancel+".*", l.cancel),
			endpoint("why", "c2."+wire.VerbWhy+".*", l.why),
			endpoint("nodes", wire.AdminSubject(wire.AdminNodes), l.nodes),
			endpoint("drain", wire.AdminSubject(wire.AdminDrain), l.drain),
			endpoint("ledger", wire.AdminSubject(wire.AdminLedger), l.ledger),
			endpoint("intake", wire.AdminSubject(wire.AdminIntake), l.intake),
			endpoint("dlq", wire.AdminSubject(wire.AdminDLQ), l.dlq),
			endpoint("assets", wire.AdminSubject(wire.AdminAssets), l.assets),
			endpoint("forget", wire.AdminSubject(wire.AdminForget), l.forget),
			endpoint("unbook", wire.AdminSubject(wire.AdminUnbook), l.unbook),
			endpoint("release", wire.AdminSubject(wire.AdminRelease), l.release),
			endpoint("memory", wire.AdminSubject(wire.AdminMemory), l.memory),
			endpoint("diagnose", wire.AdminSubject(wire.AdminDiagnose), l.diagnose),
			endpoint("flight", wire.AdminSubject(wire.AdminFlight), l.flight),
		},
	}
}

func (l *Leading) cancel(ctx context.Context, subject string, q *wire.JobRequest) (*wire.StatusReply, error) {
	tenant, err := tenantOf(subject)
	if err != nil {
		return nil, err
	}
	if _, err := find(ctx, l.Store, tenant, q.Job); err != nil {
		return nil, err
	}
	r, err := l.Leader.Cancel(ctx, q.Job, q.Reason)
	if err != nil {
		return nil, err
	}
	return &wire.StatusReply{Record: r}, nil
}

func (l *Leading) why(ctx context.Context, subject string, q *wire.JobRequest) (*wire.WhyReply, error) {
	tenant, err := tenantOf(subject)
	if err != nil {
		return nil, err
	}
	j, err := find(ctx, l.Store, tenant, q.Job)
	if err != nil {
		return nil, err
	}
	reasons, err := l.Leader.Why(ctx, j.Record.ID)
	if err != nil {
		return nil, err
	}
	return &wire.WhyReply{State: j.Record.State, Reasons: boundReasons(reasons)}, nil
}

func (l *Leading) nodes(ctx context.Context, _ string, q *wire.PageRequest) (*wire.NodesReply, error) {
	reply, err := l.Leader.Rack(ctx)
	if err != nil {
		return nil, err
	}
	reply.Leader = l.Instance
	pageNodes(reply, q.After)
	return reply, nil
}

func (l *Leading) drain(ctx context.Context, _ string, q *wire.DrainRequest) (*wire.DrainReply, error) {
	return l.Leader.Drain(ctx, q)
}

func (l *Leading) assets(ctx context.Context, _ string, q *wire.AssetsRequest) (*wire.AssetsReply, error) {
	return l.Leader.Assets(ctx, q)
}

func (l *Leading) ledger(ctx context.Context, _ string, q *wire.PageRequest) (*wire.LedgerReply, error) {
	reply, err := l.Leader.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	pageLedger(reply, q.After)
	return reply, nil
}

func (l *Leading) intake(ctx context.Context, _ string, q *wire.IntakeRequest) (*wire.Reply, error) {
	return &wire.Reply{}, l.Leader.SetIntake(ctx, q.Pause, q.Reason)
}

func (l *Leading) flight(_ context.Context, _ string, q *wire.FlightRequest) (*wire.FlightReply, error) {
	nodes := l.Leader.Flight(q.Node)
	if q.Node != "" && len(nodes) == 0 {
		return nil, fault.New(fault.NotFound, "no node %s", q.Node)
	}
	reply := &wire.FlightReply{Nodes: []wire.FlightNode{}}
	bytes := 0
	for i := range nodes {
		if bytes += size(nodes[i]); bytes > pageBytesMax && i > 0 {
			reply.Left = len(nodes) - i
			break
		}
		reply.Nodes = append(reply.Nodes, nodes[i])
	}
	return reply, nil
}

func (l *Leading) memory(ctx context.Context, _ string, q *wire.MemoryRequest) (*wire.MemoryReply, error) {
	reply, err := l.Leader.Memory(ctx, q)
	if err != nil {
		return nil, err
	}
	pageSpeeds(reply, q.SpeedsAfter)
	return reply, nil
}

// lettersMax bounds a page of dead letters, newest first.
const lettersMax = 500

func (l *Leading) dlq(ctx context.Context, _ string, q *wire.DLQRequest) (*wire.DLQReply, error) {
	reply := &wire.DLQReply{Letters: []wire.DeadLetter{}}
	if q.Job == "" {
		lettersAfter(l.Store, reply, q.After)
		if q.After != "" {
			return reply, nil
		}
		var err error
		reply.Messages, err = l.deadMessages(ctx)
		return reply, err
	}
	j, ok := l.Store.Get(q.Job)
	if !ok {
		return nil, fault.New(fault.NotFound, "no job %s", q.Job)
	}
	if q.Replay {
		r, err := l.Leader.Replay(ctx, q.Job)
		if err != nil {
			return nil, err
		}
		letter := letterOf(r)
		letter.Record = r
		reply.Letters = append(reply.Letters, letter)
		return reply, nil
	}
	if j.Record.State != job.Failed {
		return nil, fault.New(fault.Conflict, "job %s is %s, no dead letter", q.Job, j.Record.State)
	}
	letter := letterOf(j.Record)
	letter.Record = j.Record
	reply.Letters = append(reply.Letters, letter)
	return reply, nil
}

// lettersAfter adds the page of dead letters that are older than a job, all the newest when it is "".
func lettersAfter(s *store.Store, reply *wire.DLQReply, after job.ID) {
	jobs, more := s.List(store.Query{State: job.Failed, Before: after, Limit: lettersMax})
	reply.More = more
	bytes := 0
	for i, j := range jobs {
		letter := letterOf(j.Record)
		if bytes += size(letter); bytes > pageBytesMax && i > 0 {
			reply.More = true
			return
		}
		reply.Letters = append(reply.Letters, letter)
	}
}

// Bounds of a list of messages that were no tasks.
const (
	deadMessagesMax  = 100  // the newest
	deadMessagesLook = 2000 // stored ones looked at
	deadStartBytes   = 128
	deadTextBytes    = 512 // of a reason, or of a subject
)

// deadMessages are the messages that workers could not read, the newest last.
func (l *Leading) deadMessages(ctx context.Context) (list []wire.DeadMessage, err error) {
	log, err := l.Bus.Log(ctx, wire.StreamDLQ)
	if err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	state, err := log.State(ctx)
	if err != nil {
		return nil, fmt.Errorf("count dead letters: %w", err)
	}
	from := max(1, state.First, state.Last-min(state.Last, deadMessagesLook-1))
	for range deadMessagesLook {
		m, err := log.Next(ctx, wire.DLQSubject(wire.DLQMessages), from)
		if fault.KindOf(err) == fault.NotFound {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read dead letters: %w", err)
		}
		from = m.Sequence + 1
		list = append(list, wire.DeadMessage{
			At: m.At, Subject: deadText(m.Header[wire.HeaderDeadSubject]), Reason: deadText(m.Header[wire.HeaderDeadReason]),
			Bytes: len(m.Data),
			Start: m.Data[:min(len(m.Data), deadStartBytes)],
		})
	}
	return list[max(0, len(list)-deadMessagesMax):], nil
}

func deadText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), deadTextBytes)], "")
}

func letterOf(r *job.Record) wire.DeadLetter {
	letter := wire.DeadLetter{Job: r.ID, Tenant: r.Tenant, Circuit: r.Circuit, Fault: r.Fault}
	if r.EndedAt != nil {
		letter.At = *r.EndedAt
	}
	return letter
}

func (l *Leading) forget(ctx context.Context, _ string, q *wire.ForgetRequest) (*wire.ForgetReply, error) {
	f, err := l.Leader.Forget(ctx, q)
	if err != nil {
		return nil, err
	}
	return &wire.ForgetReply{Forgotten: *f}, nil
}

func (l *Leading) unbook(ctx context.Context, _ string, q *wire.UnbookRequest) (*wire.ForgetReply, error) {
	f, err := l.Leader.Unbook(ctx, q)
	if err != nil {
		return nil, err
	}
	return &wire.ForgetReply{Forgotten: *f}, nil
}

func (l *Leading) release(ctx context.Context, _ string, q *wire.ReleaseRequest) (*wire.Reply, error) {
	return &wire.Reply{}, l.Leader.Readmit(ctx, q.Node, q.Device)
}
