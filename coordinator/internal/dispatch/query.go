package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// Why says why partitions of a job wait (invariant 8). Like all methods here it may be called from any goroutine.
func (l *Leader) Why(ctx context.Context, id job.ID) (reasons []wire.Reason, err error) {
	err = l.Ask(ctx, func() {
		j, ok := l.parts.Store.Get(id)
		if !ok {
			return
		}
		for _, r := range l.core.Why(id) {
			reasons = append(reasons, l.reason(&r))
		}
		reasons = append(merge(reasons), l.reasonsBeyond(j.Record)...)
	})
	return reasons, err
}

func (l *Leader) reason(r *scheduler.Reason) wire.Reason {
	out := wire.Reason{
		Partitions: []int{r.Partition}, Text: r.Text, Node: r.Place.Node, Pool: r.Pool, Missing: r.Missing,
	}
	if !r.Until.IsZero() {
		until := r.Until
		out.Until = &until
	}
	for _, h := range r.Holders {
		holder := wire.Holder{Name: h.Name, Bytes: h.Bytes}
		if a, err := job.ParseAttempt(h.Name); err == nil {
			if e := l.book(r.Place.Node).entries[a]; e != nil {
				since := e.since
				holder.Since = &since
			}
		}
		out.Holders = append(out.Holders, holder)
	}
	return out
}

// merge puts partitions with the same reason together.
func merge(reasons []wire.Reason) []wire.Reason {
	var out []wire.Reason
	for _, r := range reasons {
		i := slices.IndexFunc(out, func(o wire.Reason) bool {
			return o.Text == r.Text && o.Node == r.Node && o.Pool == r.Pool && o.Missing == r.Missing
		})
		if i < 0 {
			out = append(out, r)
			continue
		}
		out[i].Partitions = append(out[i].Partitions, r.Partitions...)
	}
	return out
}

// reasonsBeyond says what a job waits for that the scheduler does not know.
func (l *Leader) reasonsBeyond(r *job.Record) []wire.Reason {
	var out []wire.Reason
	s := l.job(r.ID)
	if r.State == job.Active && s.trouble != "" {
		out = append(out, wire.Reason{Text: "a result has come and cannot be taken yet: " + s.trouble})
	}
	switch {
	case r.State == job.Cancelling:
		for a, t := range l.tracks {
			if a.Job == r.ID {
				out = append(out, wire.Reason{
					Partitions: []int{a.Partition}, Node: t.node,
					Text: fmt.Sprintf("node %s still holds attempt %s (%s)", t.node, a, t.amounts),
				})
			}
		}
		slices.SortFunc(out, func(a, b wire.Reason) int { return strings.Compare(a.Text, b.Text) })
	case r.State == job.Active && !s.confirmed:
		out = append(out, wire.Reason{Text: "its key is being confirmed"})
	case r.State == job.Active && r.VerifiedCount() == len(r.Partitions):
		out = append(out, wire.Reason{Text: "all partitions are proved; the proof is being put together"})
	}
	return out
}

// Fits tells whether some node could ever hold a partition of a circuit; the error has both numbers (B41).
func (l *Leader) Fits(ctx context.Context, circuitID string) error {
	var unfit error
	if err := l.Ask(ctx, func() { unfit = l.core.Fits(circuitID) }); err != nil {
		return err
	}
	return unfit
}

// Rack lists the nodes, with what the ledger has for them. Jobs and nodes are seen at the same moment (B105).
func (l *Leader) Rack(ctx context.Context) (*wire.NodesReply, error) {
	reply := &wire.NodesReply{Nodes: []wire.NodeView{}}
	err := l.Ask(ctx, func() {
		reply.Term = l.reign.Term
		stats := l.core.Stats()
		reply.Waiting = stats.Waiting + stats.Pausing + stats.Asked
		intake := l.parts.Store.Intake()
		reply.Paused = intake.Paused
		running := map[job.Node]int{}
		for a, t := range l.tracks {
			if _, ok := l.owns(a); ok {
				running[t.node]++
			}
		}
		for _, n := range l.parts.Nodes.Nodes() {
			v := l.nodeView(&n)
			v.Running = running[n.Node]
			reply.Nodes = append(reply.Nodes, v)
		}
		reply.Ready, reply.Reason = l.readiness(reply.Nodes)
	})
	return reply, err
}

// readiness tells whether the rack can take work.
func (l *Leader) readiness(nodes []wire.NodeView) (bool, string) {
	switch {
	case !l.books.up:
		return false, "the ledger is away: " + l.books.downCause
	case l.halted != "":
		return false, l.halted
	case len(nodes) == 0:
		return false, "no node is there"
	}
	var reasons []string
	for _, n := range nodes {
		if n.Ready {
			return true, ""
		}
		reasons = append(reasons, fmt.Sprintf("%s: %s", n.Node, n.Reason))
	}
	return false, "no node is ready: " + strings.Join(reasons[:min(len(reasons), 8)], "; ")
}

func (l *Leader) nodeView(n *rack.Node) wire.NodeView {
	mark := l.parts.Store.Mark(n.Node)
	view := n.View(mark)
	b := l.book(n.Node)
	out := wire.NodeView{
		Node: n.Node, Ready: view.Ready, Reason: view.Reason, Cordoned: view.Cordoned, Draining: view.Draining,
		SeenAt: n.SeenAt, Processes: []wire.ProcessView{}, Devices: []wire.DeviceView{},
		Capacity: view.Capacity, Reserved: ledger.Amounts{}, SynthSlots: view.SynthSlots,
	}
	for _, e := range b.entries {
		for pool, bytes := range e.amounts {
			out.Reserved[pool] += bytes
		}
	}
	for _, a := range b.assets {
		out.Reserved[a.Pool] += a.Bytes
	}
	for _, p := range n.Processes {
		out.Processes = append(out.Processes, wire.ProcessView{
			Instance: p.Beat.Instance, Role: p.Beat.Role, Build: p.Beat.Build, WireMin: p.Beat.WireMin,
			WireMax: p.Beat.WireMax, State: p.Beat.State, Reason: p.Beat.Reason, Host: p.Beat.Host != nil,
		})
	}
	usable := false
	for _, d := range view.Devices {
		dv := wire.DeviceView{
			Device: d.Device, Healthy: d.Healthy, Quarantined: d.Quarantined, Reason: d.Reason,
		}
		for id, c := range d.Circuits {
			if c.Ready {
				dv.Circuits = append(dv.Circuits, id)
			}
		}
		slices.Sort(dv.Circuits)
		for _, p := range n.Processes {
			for _, state := range p.Beat.Devices {
				if state.Device == d.Device {
					dv.UUID, dv.Name = state.UUID, state.Name
				}
			}
		}
		usable = usable || d.Healthy && !d.Quarantined && len(dv.Circuits) > 0
		out.Devices = append(out.Devices, dv)
	}
	switch {
	case !out.Ready:
	case !b.declared:
		out.Ready, out.Reason = false, "the ledger waits for the node to declare what it holds"
	case !usable:
		out.Ready, out.Reason = false, "no device is ready"
	}
	return out
}

// Ledger shows the books as the ledger has them now.
func (l *Leader) Ledger(ctx context.Context) (*wire.LedgerReply, error) {
	var up bool
	var epoch, cause string
	if err := l.Ask(ctx, func() {
		up, epoch, cause = l.books.up, l.books.call.Epoch, l.books.downCause
	}); err != nil {
		return nil, err
	}
	if !up {
		return nil, fault.New(fault.Transient, "the ledger is away: %s", cause)
	}
	ctx, cancel := l.call(ctx)
	defer cancel()
	names, err := l.parts.Ledger.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("list books: %w", err)
	}
	reply := &wire.LedgerReply{Nodes: []wire.LedgerNode{}}
	for _, name := range names {
		b, err := l.parts.Ledger.Node(ctx, name)
		if fault.KindOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read book of node %s: %w", name, err)
		}
		reply.Nodes = append(reply.Nodes, l.ledgerNode(b, epoch))
	}
	return reply, nil
}

func (l *Leader) ledgerNode(b *ledger.NodeBook, epoch string) wire.LedgerNode {
	out := wire.LedgerNode{
		Node: b.Node, Declared: b.ClosedFor(epoch) == "", Capacity: b.Capacity, Held: b.Used, Entries: []wire.LedgerEntry{},
	}
	if o := l.openings.of(b.Node); o.count > 0 {
		out.Openings, out.OpenedWhy, out.OpenedAt = o.count, o.why, &o.at
	}
	for _, e := range b.Entries {
		entry := wire.LedgerEntry{Name: e.Attempt.String(), Amounts: e.Amounts, Since: e.Since, Limbo: e.Limbo}
		if !e.LeaseUntil.IsZero() {
			until := e.LeaseUntil
			entry.LeaseAt = &until
		}
		if j, ok := l.parts.Store.Get(e.Attempt.Job); ok {
			entry.Owner = j.Record.Tenant
		}
		out.Entries = append(out.Entries, entry)
	}
	for _, a := range b.Assets {
		out.Entries = append(out.Entries, wire.LedgerEntry{
			Name: a.Name, Amounts: ledger.Amounts{a.Pool: a.Bytes}, Since: a.UsedAt,
		})
	}
	return out
}

// Counts are numbers for metrics.
type Counts struct {
	Late, Orphans, BadProofs, Lost int64
	Scheduler                      scheduler.Stats
	LedgerUp                       bool
	LedgerDownFor                  time.Duration
	// Drifts counts how often measured sizes began or ceased to drift, Drifting sizes that do now.
	Drifts   uint64
	Drifting int
}

// Counts gives them.
func (l *Leader) Counts(ctx context.Context) (c Counts, err error) {
	err = l.Ask(ctx, func() {
		c = Counts{
			Late: l.late.Load(), Orphans: l.orphans.Load(), BadProofs: l.badProofs.Load(), Lost: l.lost.Load(),
			Scheduler: l.core.Stats(), LedgerUp: l.books.up,
		}
		c.Drifts, c.Drifting = l.core.Drifts()
		if !l.books.up {
			c.LedgerDownFor = time.Since(l.books.downSince)
		}
	})
	return c, err
}
