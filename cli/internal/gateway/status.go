package gateway

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// GetStatus tells the truth or fails: the queue is the rack's and what is held here, added up. The upstream's state
// is added when it answers.
func (e *engine) GetStatus(ctx context.Context, _ *cuzkv1.GetStatusRequest) (*cuzkv1.GetStatusResponse, error) {
	asking, cancel := context.WithTimeout(ctx, e.config.Gateway.AnswerMax)
	defer cancel()
	c, err := e.rack.wait(asking)
	if err != nil {
		return nil, e.answer(ctx, err)
	}
	// What is held is counted first: what moves on meanwhile is counted twice rather than not at all.
	held := e.held()
	pending, running, err := queue(asking, c)
	if err != nil {
		return nil, e.answer(ctx, err)
	}
	out := &cuzkv1.GetStatusResponse{
		Queues: []*cuzkv1.QueueStatus{{
			ProofKind: cuzkv1.ProofKind_POREP_SEAL_COMMIT.String(), Pending: pending + held, InProgress: running,
		}},
		TotalProofsCompleted: e.rack.completed.Load(), TotalProofsFailed: e.rack.failed.Load(),
		UptimeSeconds: uint64(time.Since(e.begun).Seconds()),
	}
	if e.rack.operator != nil {
		if err := e.addDevices(asking, out); err != nil {
			return nil, e.answer(ctx, err)
		}
	}
	if e.upstream != nil {
		if theirs, err := e.upstream.status(ctx); err == nil {
			addUpstream(out, theirs)
		}
	}
	return out, nil
}

// held is how many PoRep requests are here: unread ones, and those that are not accepted yet.
func (e *engine) held() uint32 {
	lane := e.lanes.byKind[cuzkv1.ProofKind_POREP_SEAL_COMMIT]
	return uint32(min(lane.waiting.Load()+int64(len(lane.turns)), math.MaxUint32)) //nolint:gosec // not negative
}

// addDevices adds the rack's devices and what they have loaded.
func (e *engine) addDevices(ctx context.Context, out *cuzkv1.GetStatusResponse) error {
	nodes, err := client.Nodes(ctx, e.rack.operator, askPause)
	if err != nil {
		return err
	}
	for i := range nodes.Nodes {
		n := &nodes.Nodes[i]
		for _, d := range n.Devices {
			pool := ledger.PoolVRAM(d.Device)
			name := fmt.Sprintf("%s/%s", n.Node, d.Device)
			if d.Name != "" {
				name += " " + d.Name
			}
			total := n.Capacity[pool]
			out.Gpus = append(out.Gpus, &cuzkv1.GPUStatus{
				Ordinal: uint32(len(out.Gpus)), Name: name, //nolint:gosec // there are not as many devices
				VramTotalBytes: uint64(max(0, total)), VramFreeBytes: uint64(max(0, total-n.Reserved[pool])),
			})
		}
		out.PinnedMemoryBytes += uint64(max(0, n.Reserved[ledger.PoolPinned]))
		out.PinnedMemoryLimitBytes += uint64(max(0, n.Capacity[ledger.PoolPinned]))
	}
	assets, err := e.assets(ctx)
	if err != nil {
		return err
	}
	loaded := map[string]*cuzkv1.SRSStatus{}
	for i := range assets.Nodes {
		for k := range assets.Nodes[i].Assets {
			a := &assets.Nodes[i].Assets[k]
			circuit, ok := circuitOf(a)
			if !ok || !a.Present {
				continue
			}
			s := loaded[circuit]
			if s == nil {
				s = &cuzkv1.SRSStatus{CircuitId: theirCircuit(circuit), Tier: cuzkv1.SRSStatus_WARM}
				loaded[circuit] = s
				out.LoadedSrs = append(out.LoadedSrs, s)
			}
			if strings.HasPrefix(string(a.Pool), "vram:") {
				s.Tier = cuzkv1.SRSStatus_HOT
			}
			s.SizeBytes += uint64(max(0, a.Bytes))
			s.RefCount = max(s.RefCount, uint32(max(0, a.Users))) //nolint:gosec // a count of attempts
		}
	}
	return nil
}

// circuitOf is the circuit that an asset belongs to: parameters and what else a device keeps for its proofs. What
// synthesis keeps is none, nobody can have that given back.
func circuitOf(a *wire.AssetView) (circuit string, ok bool) {
	_, name, ok := strings.Cut(a.Name, ":")
	if !ok || strings.HasPrefix(name, "synth.") {
		return "", false
	}
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	return name, name != ""
}

// addUpstream adds what the upstream says of itself.
func addUpstream(out, theirs *cuzkv1.GetStatusResponse) {
	for _, g := range theirs.GetGpus() {
		g.Ordinal = uint32(len(out.Gpus)) //nolint:gosec // bounded by the size of the answer
		g.Name = "upstream/" + g.GetName()
		out.Gpus = append(out.Gpus, g)
	}
	out.LoadedSrs = append(out.LoadedSrs, theirs.GetLoadedSrs()...)
	out.Queues = append(out.Queues, theirs.GetQueues()...)
	out.TotalProofsCompleted += theirs.GetTotalProofsCompleted()
	out.TotalProofsFailed += theirs.GetTotalProofsFailed()
	out.PinnedMemoryBytes += theirs.GetPinnedMemoryBytes()
	out.PinnedMemoryLimitBytes += theirs.GetPinnedMemoryLimitBytes()
}
