package dispatch

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// transferLife is how long a token for a copy is good; a copy that takes longer is ordered again and goes on.
const transferLife = 6 * time.Hour

// Assets lists what the attempts of nodes share, by the ledger and by the nodes' own word, or has one node preload,
// evict or copy. Orders are sent once; the list shows what becomes of them.
func (l *Leader) Assets(ctx context.Context, q *wire.AssetsRequest) (*wire.AssetsReply, error) {
	if q.Do == "" {
		return l.listAssets(ctx, q.Node)
	}
	n, ok := l.parts.Nodes.Node(q.Node)
	if !ok {
		return nil, fault.New(fault.NotFound, "no node %s", q.Node)
	}
	if len(circuitsOf(&n, q.Circuit)) == 0 {
		return nil, fault.New(fault.NotFound, "no device of node %s proves circuit %s", q.Node, q.Circuit)
	}
	switch q.Do {
	case wire.AssetsPreload:
		return &wire.AssetsReply{}, l.preload(ctx, &n, q.Circuit)
	case wire.AssetsEvict:
		return &wire.AssetsReply{}, l.evictCircuit(ctx, &n, q.Circuit)
	}
	from, err := l.copyParams(ctx, &n, q)
	return &wire.AssetsReply{From: from}, err
}

func (l *Leader) listAssets(ctx context.Context, only job.Node) (*wire.AssetsReply, error) {
	reply := &wire.AssetsReply{Nodes: []wire.NodeAssets{}}
	for _, n := range l.parts.Nodes.Nodes() {
		if only != "" && n.Node != only {
			continue
		}
		out := wire.NodeAssets{Node: n.Node, Assets: []wire.AssetView{}, Circuits: circuitsOf(&n, "")}
		book, err := l.nodeBook(ctx, n.Node)
		if err != nil {
			return nil, err
		}
		for _, a := range book.Assets {
			same := func(r ledger.Asset) bool { return r.Key() == a.Key() }
			present := a.Name == ledger.AssetSegments || n.Host != nil && slices.ContainsFunc(n.Host.Report.Assets, same)
			out.Assets = append(out.Assets, wire.AssetView{
				Asset: a.Asset, Users: a.Users, UsedAt: a.UsedAt, Present: present,
			})
		}
		reply.Nodes = append(reply.Nodes, out)
	}
	if only != "" && len(reply.Nodes) == 0 {
		return nil, fault.New(fault.NotFound, "no node %s", only)
	}
	return reply, nil
}

// nodeBook reads a node's book; a node without one has an empty one.
func (l *Leader) nodeBook(ctx context.Context, name job.Node) (*ledger.NodeBook, error) {
	ctx, cancel := l.call(ctx)
	defer cancel()
	book, err := l.parts.Ledger.Node(ctx, name)
	if fault.KindOf(err) == fault.NotFound {
		return &ledger.NodeBook{Node: name}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read book of node %s: %w", name, err)
	}
	return book, nil
}

// circuitsOf is what a node's devices say of a circuit, or of all for "".
func circuitsOf(n *rack.Node, circuit string) []wire.CircuitState {
	out := []wire.CircuitState{}
	for _, p := range n.Processes {
		for _, d := range p.Beat.Devices {
			for _, c := range d.Circuits {
				if circuit == "" || c.Circuit == circuit {
					out = append(out, wire.CircuitState{
						Device: d.Device, Circuit: c.Circuit, Ready: c.Ready, Missing: c.Missing, Digest: c.ParamsDigest,
						Loading: c.Loading,
					})
				}
			}
		}
	}
	return out
}

// ofCircuit tells whether an asset is one of a circuit's that GPU workers hold.
func ofCircuit(asset, circuit string) bool {
	_, name, _ := strings.Cut(asset, ":")
	if i := strings.LastIndexByte(name, '.'); i >= 0 && !strings.HasPrefix(name, "synth.") {
		name = name[i+1:]
	}
	return name == circuit
}

// preload books a circuit's assets in the ledger, as an attempt would that ends at once: they stay there, idle. Idle
// assets of other circuits are evicted for them. Then the node is told to load them. What it could not load it does not
// declare, so the ledger drops it again.
func (l *Leader) preload(ctx context.Context, n *rack.Node, circuit string) error {
	var assets []ledger.Asset
	view := n.View(l.parts.Store.Mark(n.Node))
	for _, d := range view.Devices {
		c, ok := d.Circuits[circuit]
		if !ok || !c.Ready || len(c.Choices) == 0 {
			continue
		}
		for _, a := range c.Choices[0].Assets {
			known := slices.ContainsFunc(assets, func(b ledger.Asset) bool { return a.Key() == b.Key() })
			if !known && ofCircuit(a.Name, circuit) {
				assets = append(assets, a)
			}
		}
	}
	if len(assets) == 0 {
		return fault.New(fault.NotFound, "node %s is not ready for circuit %s", n.Node, circuit)
	}
	var up bool
	var call ledger.Call
	if err := l.Ask(ctx, func() { up, call = l.books.up, l.books.call }); err != nil {
		return err
	}
	if !up {
		return fault.New(fault.Transient, "the ledger is away")
	}
	id, err := job.NewID()
	if err != nil {
		return err
	}
	want := &ledger.Reservation{
		Attempt: job.Attempt{Job: id, Fence: 1}, Node: n.Node, Amounts: ledger.Amounts{}, Assets: assets,
	}
	if err := l.bookWithRoom(ctx, call, want); err != nil {
		return fmt.Errorf("book circuit %s on node %s: %w", circuit, n.Node, err)
	}
	// The order goes first: what is booked and idle is dropped again by a declaration without it.
	l.sendControl(&wire.Control{
		Node: n.Node, Kind: wire.ControlPreload, Circuit: circuit, Reason: "asked for by an operator",
	})
	callCtx, cancel := l.call(ctx)
	defer cancel()
	if _, err := l.parts.Ledger.Release(callCtx, call, n.Node, want.Attempt); err != nil {
		return fmt.Errorf("book circuit %s on node %s: %w", circuit, n.Node, err) // its lease ends
	}
	l.log.Info().Str("c2.node.id", string(n.Node)).Str("circuit", circuit).Msg("preload was ordered")
	l.inbox.post(func() { l.readBook(n.Node) })
	return nil
}

// evictCircuit has a node give back a circuit's assets, unless attempts use them.
func (l *Leader) evictCircuit(ctx context.Context, n *rack.Node, circuit string) error {
	book, err := l.nodeBook(ctx, n.Node)
	if err != nil {
		return err
	}
	var names []string
	for _, a := range book.Assets {
		if !ofCircuit(a.Name, circuit) {
			continue
		}
		if a.Users > 0 {
			return ledger.InUse(n.Node, a.Name, a.Users)
		}
		names = append(names, a.Name)
	}
	if len(names) == 0 {
		return fault.New(fault.NotFound, "nothing of circuit %s is loaded on node %s", circuit, n.Node)
	}
	return l.Ask(ctx, func() {
		for _, name := range names {
			l.book(n.Node).evicting[name] = time.Now()
		}
		// Any of its names has a worker give back all that a device has of the circuit.
		l.sendControl(&wire.Control{
			Node: n.Node, Kind: wire.ControlEvict, Asset: "srs:" + circuit, Reason: "asked for by an operator",
		})
	})
}

// copyParams has a node fetch a circuit's parameter file from another one, and tells from which.
func (l *Leader) copyParams(ctx context.Context, to *rack.Node, q *wire.AssetsRequest) (job.Node, error) {
	var source *wire.DeviceCircuit
	var from job.Node
	var address string
	for _, n := range l.parts.Nodes.Nodes() {
		if n.Node == to.Node || q.From != "" && n.Node != q.From {
			continue
		}
		if c, url := giver(&n, q.Circuit); c != nil && source == nil {
			source, from, address = c, n.Node, url
		}
	}
	if source == nil {
		return "", fault.WithHint(
			fault.New(fault.NotFound, "no other node gives parameters of circuit %s", q.Circuit),
			"a node gives its parameter files where its GPU worker has assets.listen set")
	}
	for _, c := range circuitsOf(to, q.Circuit) {
		if c.Ready && c.Digest == source.ParamsDigest {
			return "", fault.New(fault.Conflict, "node %s has the parameters of circuit %s already", to.Node, q.Circuit)
		}
	}
	t := wire.Transfer{Circuit: q.Circuit, Token: rand.Text(), Expires: time.Now().Add(transferLife).UTC()}
	fetch := t
	fetch.URL, fetch.Bytes = address, source.FileBytes
	fetch.Digest, fetch.Development = source.ParamsDigest, source.Development
	why := "asked for by an operator"
	err := l.Ask(ctx, func() {
		l.sendControl(&wire.Control{Node: from, Kind: wire.ControlShare, Transfer: &t, Reason: why})
		l.sendControl(&wire.Control{Node: to.Node, Kind: wire.ControlFetch, Transfer: &fetch, Reason: why})
	})
	l.log.Info().Str("c2.node.id", string(to.Node)).Str("from", string(from)).Str("circuit", q.Circuit).
		Msg("copy of parameters was ordered")
	return from, err
}

// giver is what a node's worker that gives files says of a circuit that it has, and its address.
func giver(n *rack.Node, circuit string) (*wire.DeviceCircuit, string) {
	for _, p := range n.Processes {
		if p.Beat.AssetsURL == "" {
			continue
		}
		for _, d := range p.Beat.Devices {
			for i := range d.Circuits {
				if c := &d.Circuits[i]; c.Circuit == circuit && c.Ready && c.FileBytes > 0 {
					return c, p.Beat.AssetsURL
				}
			}
		}
	}
	return nil, ""
}
