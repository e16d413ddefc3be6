package gateway

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/wire"
)

// ourCircuit is a circuit of the protocol as the rack names it: porep-32g is porep-32GiB. The rack's own names are
// understood too.
func ourCircuit(id string) (string, bool) {
	size := map[string]string{"porep-2k": "2KiB", "porep-8m": "8MiB", "porep-512m": "512MiB", "porep-32g": "32GiB",
		"porep-64g": "64GiB"}[id]
	if size != "" {
		id = "porep-" + size
	}
	_, err := catalog.Find(id)
	return id, err == nil
}

// theirCircuit is the reverse, as far as the protocol has a name.
func theirCircuit(id string) string {
	for _, unit := range []struct{ ours, theirs string }{{"KiB", "k"}, {"MiB", "m"}, {"GiB", "g"}} {
		if name, ok := strings.CutSuffix(id, unit.ours); ok && strings.HasPrefix(id, "porep-") {
			return name + unit.theirs
		}
	}
	return id
}

// PreloadSRS has every node that proves a circuit load its parameters, and waits for it.
func (e *engine) PreloadSRS(ctx context.Context, r *cuzkv1.PreloadSrsRequest) (*cuzkv1.PreloadSrsResponse, error) {
	circuit, ours := ourCircuit(r.GetCircuitId())
	if !ours {
		if e.upstream == nil {
			return nil, noCircuit(r.GetCircuitId())
		}
		return forward(ctx, e.upstream, nil, cuzkv1.ProvingEngine_PreloadSRS_FullMethodName, r,
			&cuzkv1.PreloadSrsResponse{})
	}
	begun := time.Now()
	nodes, err := e.order(ctx, wire.AssetsPreload, circuit)
	if err != nil {
		return nil, e.answer(ctx, err)
	}
	out := &cuzkv1.PreloadSrsResponse{AlreadyLoaded: nodes.ordered == 0}
	if nodes.ordered > 0 {
		out.LoadTimeMs = milliseconds(time.Since(begun).Seconds())
	}
	return out, nil
}

// EvictSRS has every node give a circuit's parameters back. While attempts use them it is refused.
func (e *engine) EvictSRS(ctx context.Context, r *cuzkv1.EvictSrsRequest) (*cuzkv1.EvictSrsResponse, error) {
	circuit, ours := ourCircuit(r.GetCircuitId())
	if !ours {
		if e.upstream == nil {
			return nil, noCircuit(r.GetCircuitId())
		}
		return forward(ctx, e.upstream, nil, cuzkv1.ProvingEngine_EvictSRS_FullMethodName, r, &cuzkv1.EvictSrsResponse{})
	}
	nodes, err := e.order(ctx, wire.AssetsEvict, circuit)
	if err != nil {
		return nil, e.answer(ctx, err)
	}
	return &cuzkv1.EvictSrsResponse{WasLoaded: nodes.ordered > 0, FreedBytes: nodes.bytes}, nil
}

func noCircuit(id string) error {
	return status.Errorf(codes.NotFound, "circuit_id: neither the rack nor an upstream has circuit %.80q", id)
}

// ordered is what came of an order to all nodes.
type ordered struct {
	ordered int    // nodes that had something to do
	bytes   uint64 // of parameters that are gone
}

// assets asks what nodes hold, as an operator.
func (e *engine) assets(ctx context.Context) (*wire.AssetsReply, error) {
	return e.askAssets(ctx, &wire.AssetsRequest{})
}

func (e *engine) askAssets(ctx context.Context, q *wire.AssetsRequest) (*wire.AssetsReply, error) {
	b, err := e.rack.asOperator()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, e.config.Gateway.AnswerMax)
	defer cancel()
	var reply wire.AssetsReply
	return &reply, client.Ask(ctx, b, wire.AdminSubject(wire.AdminAssets), q, &reply, askPause)
}

// order has nodes load a circuit's parameters or give them back, and waits until they have.
func (e *engine) order(ctx context.Context, do, circuit string) (*ordered, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.config.Gateway.LoadMax,
		fault.New(fault.Transient, "nodes have not followed the order within %s", e.config.Gateway.LoadMax))
	defer cancel()
	ctx, stop := e.untilLeaving(ctx)
	defer stop()
	want := do == wire.AssetsPreload
	reply, err := e.assets(ctx)
	if err != nil {
		return nil, err
	}
	out := &ordered{}
	proving := 0
	for i := range reply.Nodes {
		n := &reply.Nodes[i]
		state := stateOf(n, circuit)
		if !state.proves {
			continue
		}
		proving++
		if state.loaded == want {
			continue
		}
		_, err := e.askAssets(ctx, &wire.AssetsRequest{Do: do, Node: n.Node, Circuit: circuit})
		if !want && fault.KindOf(err) == fault.NotFound {
			continue // it was given back meanwhile
		}
		if err != nil {
			return nil, err
		}
		out.ordered++
		bytes, err := e.followed(ctx, n.Node, circuit, want)
		if err != nil {
			return nil, err
		}
		if !want {
			out.bytes += state.bytes - min(bytes, state.bytes)
		}
	}
	if proving == 0 {
		return nil, fault.New(fault.NotFound, "no node of the rack proves circuit %s", circuit)
	}
	return out, nil
}

// followed waits until a node has, or has not, a circuit's parameters, and tells the bytes of them that it has then.
func (e *engine) followed(ctx context.Context, node job.Node, circuit string, want bool) (uint64, error) {
	for absent := 0; ; {
		reply, err := e.askAssets(ctx, &wire.AssetsRequest{Node: node})
		switch {
		case err == nil && len(reply.Nodes) == 1:
			state := stateOf(&reply.Nodes[0], circuit)
			if state.loaded == want {
				return state.bytes, nil
			}
			if state.missing != "" && want {
				return 0, fault.New(fault.Conflict, "node %s: %s", node, state.missing)
			}
			// What a node could not load is not in its book any more.
			if absent++; state.booked {
				absent = 0
			} else if want && absent >= absentMax {
				return 0, fault.New(fault.Conflict, "node %s did not load circuit %s; its log says why", node, circuit)
			}
		case err == nil:
			return 0, fault.New(fault.NotFound, "node %s is gone", node)
		case fault.KindOf(err) != fault.Transient:
			return 0, err
		}
		timer := time.NewTimer(askPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0, errors.Join(context.Cause(ctx), err)
		}
	}
}

// absentMax bounds how often in a row a circuit may be absent that a node was told to load: more than it takes from
// the order to the book.
const absentMax = 10

// circuitState is a circuit on a node.
type circuitState struct {
	proves, loaded bool
	booked         bool // it is loaded, or is to be
	missing        string
	bytes          uint64
}

func stateOf(n *wire.NodeAssets, circuit string) circuitState {
	var s circuitState
	loading := false
	for i := range n.Circuits {
		if c := &n.Circuits[i]; c.Circuit == circuit {
			s.proves = true
			loading = loading || c.Loading != nil
			if !c.Ready {
				s.missing = c.Missing
			}
		}
	}
	for i := range n.Assets {
		if name, ok := circuitOf(&n.Assets[i]); ok && name == circuit {
			s.booked = true
			s.loaded = s.loaded || n.Assets[i].Present
			s.bytes += uint64(max(0, n.Assets[i].Bytes))
		}
	}
	s.loaded, s.booked = s.loaded && !loading, s.booked || loading
	return s
}
