package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/sizes"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/metrics"
	"github.com/proofrack/proofrack/shared/wire"
)

// Show puts what the leader knows of the rack into a page of metrics. It may be called from any goroutine.
func (l *Leader) Show(ctx context.Context, e *metrics.Emitter) error {
	showJobs(e, l.parts.Store.Counts(), l.parts.Store.Live())
	asked := time.Now()
	if _, err := l.parts.Ledger.Nodes(ctx); err == nil {
		e.Put(metrics.LedgerAnswer, time.Since(asked).Seconds())
	}
	var table *sizes.Table
	var drifts uint64
	if err := l.Ask(ctx, func() { table = l.core.Sizes(); drifts, _ = l.core.Drifts() }); err != nil {
		return err
	}
	showSizes(e, table, drifts)
	return l.Ask(ctx, func() {
		e.Put(metrics.Term, float64(l.reign.Term))
		e.Flag(metrics.LedgerUp, l.books.up)
		e.Flag(metrics.RackHalted, l.halted != "")
		e.Flag(metrics.IntakePaused, l.parts.Store.Intake().Paused)
		l.showWaits(e)
		var views []wire.NodeView
		alive := map[job.Node]bool{}
		for _, n := range l.parts.Nodes.Nodes() {
			v := l.nodeView(&n)
			l.showNode(e, &n, &v)
			views, alive[n.Node] = append(views, v), true
		}
		ready, _ := l.readiness(views)
		e.Flag(metrics.RackReady, ready)
		for name, b := range l.books.of { // the books of those that are gone, too: their bytes still count
			e.Flag(metrics.NodePresent, alive[name], string(name))
			e.Flag(metrics.NodeBookOpen, b.declared, string(name))
			showBook(e, string(name), b)
		}
	})
}

func showSizes(e *metrics.Emitter, table *sizes.Table, drifts uint64) {
	e.Put(metrics.DriftEvents, float64(drifts))
	for _, s := range table.Sizes() {
		key := []string{s.Circuit, string(s.Stage), s.Kind, string(s.Pool)}
		for what, bytes := range map[string]bytesize.Bytes{
			"computed": s.Computed, "p50": s.P50, "p99": s.P99, "booked": s.Booked,
		} {
			e.Put(metrics.SizeBytes, float64(bytes), append(slices.Clone(key), what)...)
		}
		drift := 0.0
		switch {
		case s.Over:
			drift = 1
		case s.Under:
			drift = -1
		}
		e.Put(metrics.SizeDrift, drift, key...)
	}
}

func showJobs(e *metrics.Emitter, counts map[job.State]int, live []store.Job) {
	for _, state := range []job.State{job.Active, job.Cancelling, job.Done, job.Failed, job.Cancelled} {
		e.Put(metrics.Jobs, float64(counts[state]), string(state))
	}
	stages := map[job.Stage]int{}
	for _, j := range live {
		for i := range j.Record.Partitions {
			stages[j.Record.Partitions[i].Stage]++
		}
	}
	for _, stage := range []job.Stage{
		job.Waiting, job.Reserved, job.Synthesizing, job.Sealed, job.Proving, job.Proved, job.Verified, job.StageFailed,
		job.StageStopped,
	} {
		e.Put(metrics.Partitions, float64(stages[stage]), string(stage))
	}
}

func (l *Leader) showWaits(e *metrics.Emitter) {
	waits, oldest := l.core.Waits()
	seen := map[scheduler.Code]bool{}
	for _, w := range waits {
		seen[w.Reason] = true
		e.Put(metrics.Waiting, float64(w.Partitions), string(w.Reason), string(w.Pool))
		if w.Missing > 0 {
			e.Put(metrics.MissingBytes, float64(w.Missing), string(w.Pool))
		}
	}
	showNeeded(e, waits)
	for _, code := range scheduler.Codes() {
		if !seen[code] {
			e.Put(metrics.Waiting, 0, string(code), "")
		}
	}
	age := time.Duration(0)
	if !oldest.IsZero() {
		age = max(0, time.Since(oldest))
	}
	e.Put(metrics.QueueOldest, age.Seconds())
}

// showNeeded adds up what waits for the same reason ask for: those for memory are apart by the pool that is short.
func showNeeded(e *metrics.Emitter, waits []scheduler.Wait) {
	type key struct {
		reason scheduler.Code
		pool   ledger.Pool
	}
	sums := map[key]bytesize.Bytes{}
	for _, w := range waits {
		for pool, bytes := range w.Needed {
			sums[key{w.Reason, pool}] += bytes
		}
	}
	for k, bytes := range sums {
		e.Put(metrics.WaitingBytes, float64(bytes), string(k.reason), string(k.pool))
	}
}

func (l *Leader) showNode(e *metrics.Emitter, n *rack.Node, v *wire.NodeView) {
	name := string(n.Node)
	e.Flag(metrics.NodeReady, v.Ready, name)
	e.Flag(metrics.NodeDrained, v.Draining || v.Cordoned, name)
	silent := map[string]time.Duration{}
	for _, p := range n.Processes {
		silent[p.Beat.Role] = max(silent[p.Beat.Role], time.Since(p.SeenAt))
	}
	for role, age := range silent {
		e.Put(metrics.NodeBeatAge, age.Seconds(), name, role)
	}
	for _, d := range v.Devices {
		e.Flag(metrics.NodeDevice, d.Healthy && !d.Quarantined && len(d.Circuits) > 0, name, string(d.Device))
		e.Flag(metrics.NodeQuarantine, d.Quarantined, name, string(d.Device))
	}
	f := n.Flight()
	e.Put(metrics.NodeLeaks, float64(len(f.Leaks)), name)
	for _, r := range f.Reports {
		for i := range r.Classes {
			c := &r.Classes[i]
			e.Put(metrics.Measured, float64(c.Bytes), name, metrics.PlainProcess(r.Process), string(c.Class))
		}
	}
	if n.Host == nil {
		return
	}
	for pool, bytes := range n.Host.Report.Capacity {
		e.Put(metrics.Capacity, float64(bytes), name, string(pool))
	}
	e.Put(metrics.NodeClock, n.Host.Report.At.Sub(n.Host.SeenAt).Seconds(), name)
	showDeclared(e, name, &n.Host.Report)
}

// heap is bytes by pool, class and state.
type heap map[[3]string]bytesize.Bytes

func (h heap) add(pool ledger.Pool, class ledger.Class, state string, bytes bytesize.Bytes) {
	if bytes > 0 {
		h[[3]string{string(pool), string(class), state}] += bytes
	}
}

func (h heap) show(e *metrics.Emitter, name metrics.Name, node string) {
	for key, bytes := range h {
		e.Put(name, float64(bytes), node, key[0], key[1], key[2])
	}
}

// attempt adds what an attempt has. Its segment is of class assignment and counts in shm and in ram, or on disk; the
// rest is scratch.
func (h heap) attempt(amounts ledger.Amounts, state string) {
	for pool, bytes := range amounts {
		segment := bytesize.Bytes(0)
		switch pool {
		case ledger.PoolSHM, ledger.PoolDisk:
			segment = bytes
		case ledger.PoolRAM:
			segment = min(bytes, amounts[ledger.PoolSHM])
		}
		h.add(pool, ledger.ClassAssignment, state, segment)
		h.add(pool, ledger.ClassScratch, state, bytes-segment)
	}
}

// States of booked and declared bytes.
const (
	heldLive  = "live"  // of an attempt that works, or may
	heldLimbo = "limbo" // of an attempt that is over and not proved to be gone
	heldDead  = "dead"  // the process that held them is gone
	heldAsset = "asset" // shared by attempts
	heldFree  = "free"  // segments that wait to be used again
)

func assetState(a *ledger.Asset) string {
	if a.Name == ledger.AssetSegments {
		return heldFree
	}
	return heldAsset
}

func showBook(e *metrics.Emitter, node string, b *book) {
	sums, users := heap{}, map[string]int{}
	for _, entry := range b.entries {
		state := heldLive
		if entry.limbo {
			state = heldLimbo
		}
		sums.attempt(entry.amounts, state)
		for _, a := range entry.assets {
			users[a.Name]++
		}
	}
	for i := range b.assets {
		a := &b.assets[i]
		sums.add(a.Pool, a.Class, assetState(a), a.Bytes)
		if a.Name != ledger.AssetSegments {
			e.Put(metrics.NodeAssetUsers, float64(users[a.Name]), node, a.Name)
		}
	}
	sums.show(e, metrics.Booked, node)
}

func showDeclared(e *metrics.Emitter, node string, r *wire.HostReport) {
	sums := heap{}
	for i := range r.Book {
		state := heldLive
		if !r.Book[i].Alive {
			state = heldDead
		}
		sums.attempt(r.Book[i].Amounts, state)
	}
	for i := range r.Assets {
		sums.add(r.Assets[i].Pool, r.Assets[i].Class, heldAsset, r.Assets[i].Bytes)
	}
	for _, a := range freeSegments(r) {
		sums.add(a.Pool, a.Class, heldFree, a.Bytes)
	}
	sums.show(e, metrics.Declared, node)
}
