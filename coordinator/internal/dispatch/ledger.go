package dispatch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// beginLedger opens this term in the ledger.
func (l *Leader) beginLedger() {
	if l.books.beginning {
		return
	}
	l.books.beginning = true
	l.lanes.do("ledger", func(ctx context.Context) {
		callCtx, cancel := l.call(ctx)
		defer cancel()
		call, err := l.parts.Ledger.Begin(callCtx, l.reign.Term, l.reign.Epoch)
		var names []job.Node
		if err == nil {
			names, err = l.parts.Ledger.Nodes(callCtx)
		}
		l.inbox.post(func() {
			l.books.beginning, l.books.beganAt = false, time.Now()
			switch {
			case fault.KindOf(err) == fault.Lost:
				l.deposed = err
			case err != nil:
				l.ledgerDown(err)
			default:
				l.ledgerUp(call, names)
			}
		})
	})
}

// ledgerUp goes on with a ledger that answers: all books are read, those of nodes too that nobody has heard of in this
// reign, and releases that were kept are sent.
func (l *Leader) ledgerUp(call ledger.Call, names []job.Node) {
	b := &l.books
	b.up, b.call, b.downCause = true, call, ""
	l.holdUntil = time.Now().Add(l.cfg.Lease)
	l.renewedAt = time.Time{}
	l.log.Info().Str("epoch", call.Epoch).Msg("ledger is in use")
	l.apply(scheduler.Paused{On: false})
	for name, of := range b.of {
		for a := range of.freeing {
			if !of.transferring[a] {
				l.release(name, a)
			}
		}
	}
	for _, name := range names {
		l.readBook(name)
	}
	for _, n := range l.parts.Nodes.Nodes() {
		if !slices.Contains(names, n.Node) {
			l.readBook(n.Node)
		}
	}
}

// ledgerDown stops granting until the ledger answers again.
func (l *Leader) ledgerDown(err error) {
	b := &l.books
	if b.up || b.downCause == "" {
		b.downSince, b.beganAt = time.Now(), time.Now()
		l.log.Error().Err(err).Msg("ledger is away: nothing is granted, running work goes on")
	}
	b.up, b.downCause = false, err.Error()
	l.apply(scheduler.Paused{On: true, Reason: "the ledger is away: " + err.Error()})
}

// ledgerTrouble takes the error of a call about a node.
func (l *Leader) ledgerTrouble(node job.Node, err error) {
	switch {
	case err == nil:
	case transient(err):
		l.ledgerDown(err)
	case closed(err):
		l.bookClosed(node, err)
	default:
		l.log.Warn().Err(err).Str("c2.node.id", string(node)).Msg("ledger refused a call")
	}
}

// bookClosed notes that nothing is granted on a node until it has declared what it holds, by a report that comes after
// this.
func (l *Leader) bookClosed(node job.Node, err error) {
	b := l.book(node)
	b.mistrust(l.parts.Nodes.Reports())
	if !b.declared {
		return
	}
	l.log.Warn().Err(err).Str("c2.node.id", string(node)).Msg("the node has to declare again what it holds")
	b.declared = false
	l.askReport(node)
	if n, ok := l.parts.Nodes.Node(node); ok {
		l.tellNode(&n, &scheduler.Book{Holdings: b.holdings(), Assets: b.assets})
	}
}

// askReport has a node report at once what it holds: nothing is granted there until a report has been declared, and
// the next one by itself may be a heartbeat away.
func (l *Leader) askReport(node job.Node) {
	s := l.node(node)
	if now := time.Now(); now.Sub(s.askedAt) >= l.cfg.Heartbeat/2 {
		s.askedAt = now
		l.sendControl(&wire.Control{Node: node, Kind: wire.ControlReport})
	}
}

// mistrust asks for a report of the node that comes after all that have come before it gets grants again.
func (b *book) mistrust(reports uint64) { b.compared, b.declaredCount = false, reports }

// reserve books the attempt's whole path, or takes over what an ended attempt had.
func (l *Leader) reserve(ctx context.Context, call ledger.Call, d *scheduler.Admit) error {
	ctx, cancel := l.call(ctx)
	defer cancel()
	want := &ledger.Reservation{
		Attempt: d.Attempt, Node: d.Place.Node, Amounts: d.Needs.Amounts, Assets: d.Needs.Assets,
	}
	if d.From != nil {
		return l.parts.Ledger.Transfer(ctx, call, *d.From, want)
	}
	return l.parts.Ledger.Reserve(ctx, call, want)
}

// release gives the bytes of an attempt back to the ledger; the node's evidence has come. It is tried again until the
// ledger has taken it (B72). What was booked and never claimed is passed over first.
func (l *Leader) release(node job.Node, a job.Attempt) {
	b := l.book(node)
	b.freeing[a] = true
	delete(b.transferring, a)
	j, ok := l.parts.Store.Get(a.Job)
	if !ok || a.Partition >= len(j.Record.Partitions) || j.Record.Partitions[a.Partition].Fence >= a.Fence {
		l.sendRelease(node, a)
		return
	}
	l.change(a.Job, "pass over", passingOver(a), func(j store.Job, err error) {
		owner := err == nil && owns(j.Record, a) && j.Record.Partitions[a.Partition].Node == node
		if owner || err != nil && fault.KindOf(err) != fault.NotFound {
			delete(b.freeing, a)
			l.readBook(node)
			return
		}
		l.sendRelease(node, a)
	})
}

func (l *Leader) sendRelease(node job.Node, a job.Attempt) {
	if !l.books.up {
		return // sent when the ledger is back
	}
	call := l.books.call
	l.lanes.do(laneOfNode(node), func(ctx context.Context) {
		l.parts.Hooks.Hit(ctx, PointRelease)
		callCtx, cancel := l.call(ctx)
		defer cancel()
		_, err := l.parts.Ledger.Release(callCtx, call, node, a)
		l.inbox.post(func() {
			if err != nil {
				l.ledgerTrouble(node, fmt.Errorf("release attempt %s: %w", a, err))
				return
			}
			l.released(node, a)
		})
	})
}

// released notes that the ledger has nothing of an attempt any more.
func (l *Leader) released(node job.Node, a job.Attempt) {
	b := l.book(node)
	delete(b.freeing, a)
	delete(b.transferring, a)
	delete(b.entries, a)
	b.gone[a] = time.Now()
	if t := l.tracks[a]; t != nil && !t.running {
		delete(l.tracks, a)
	}
	l.seeStopping(a.Job)
}

// readBook reads a node's book in the ledger, and declares what the node holds before that when this is due.
func (l *Leader) readBook(name job.Node) {
	b := l.book(name)
	if !l.books.up {
		return
	}
	if b.reading {
		b.again = true
		return
	}
	b.reading, b.refreshAt = true, time.Time{}
	call := l.books.call
	declaration, count := l.declarationDue(name, b)
	l.lanes.do(laneOfNode(name), func(ctx context.Context) {
		callCtx, cancel := l.call(ctx)
		defer cancel()
		var drift *ledger.Drift
		var read *ledger.NodeBook
		var err error
		if declaration != nil {
			drift, err = l.parts.Ledger.Declare(callCtx, call, declaration)
		}
		if err == nil {
			read, err = l.parts.Ledger.Node(callCtx, name)
		}
		if fault.KindOf(err) == fault.NotFound {
			read, err = &ledger.NodeBook{Node: name}, nil
		}
		l.inbox.post(func() {
			b.reading = false
			if err != nil {
				l.ledgerTrouble(name, fmt.Errorf("read book of node %s: %w", name, err))
				return
			}
			if drift != nil {
				b.declaredCount, b.declaredAt, b.compared = max(b.declaredCount, count), time.Now(), !drift.Stale
				l.drifted(name, b, drift)
			}
			l.tookBook(name, b, read)
		})
	})
}

// declarable tells whether a node's last host report is to be declared: in each epoch, when it shows what the ledger
// can't know, when it frees something, and now and then.
func (l *Leader) declarable(b *book, n *rack.Node) bool {
	if n.Host == nil || !n.Host.Report.BookComplete || n.Host.Count <= b.declaredCount ||
		time.Since(n.Host.SeenAt) > 2*l.cfg.Heartbeat {
		return false
	}
	report := &n.Host.Report
	if !b.declared || n.Host.Boot != b.boot || n.Host.Instance != b.instance || !maps.Equal(report.Capacity, b.capacity) ||
		time.Since(b.declaredAt) >= l.cfg.Lease {
		return true
	}
	held := map[job.Attempt]bool{}
	for _, booking := range report.Book {
		a := booking.Attempt
		held[a] = true
		if b.entries[a] == nil && !b.asks(a) && !b.freeing[a] && !l.goneSince(b, a, n.Host) {
			return true
		}
	}
	for a, e := range b.entries {
		if e.limbo && !held[a] {
			return true
		}
	}
	return slices.ContainsFunc(report.Assets, func(a ledger.Asset) bool { return !slices.Contains(b.assets, a) })
}

// goneSince tells whether an attempt's bytes came back so shortly before a host report that this may still show them.
func (l *Leader) goneSince(b *book, a job.Attempt, h *rack.Host) bool {
	at, ok := b.gone[a]
	return ok && at.After(h.SeenAt.Add(-2*l.cfg.Heartbeat))
}

// declarationDue gives what a node has to declare, nil for nothing.
func (l *Leader) declarationDue(name job.Node, b *book) (*ledger.Declaration, uint64) {
	n, ok := l.parts.Nodes.Node(name)
	if !ok || !l.declarable(b, &n) {
		return nil, 0
	}
	report := &n.Host.Report
	d := &ledger.Declaration{
		Node: name, Boot: n.Host.Boot, Instance: n.Host.Instance, Seq: n.Host.Seq,
		Capacity: report.Capacity, Assets: slices.Clone(report.Assets), Correction: b.declared,
	}
	d.Assets = append(d.Assets, freeSegments(report)...)
	for _, booking := range report.Book {
		a := booking.Attempt
		if b.freeing[a] || l.goneSince(b, a, n.Host) {
			continue
		}
		d.Holdings = append(d.Holdings, ledger.Holding{
			Attempt: a, Amounts: booking.Amounts, Dead: !booking.Alive && !l.running(a),
		})
	}
	if d.Claims, ok = l.claims(&n, b); !ok {
		return nil, 0
	}
	return d, n.Host.Count
}

// freeSegments are a node's free segments as assets. Those in memory take shm and ram: every byte of shm is one of ram.
func freeSegments(report *wire.HostReport) (assets []ledger.Asset) {
	for _, free := range []struct {
		bytes bytesize.Bytes
		pools []ledger.Pool // the first bounds it
	}{
		{report.FreeSHMBytes, []ledger.Pool{ledger.PoolSHM, ledger.PoolRAM}},
		{report.FreeDiskBytes, []ledger.Pool{ledger.PoolDisk}},
	} {
		if free.bytes <= 0 || free.bytes > report.Capacity[free.pools[0]] {
			continue
		}
		for _, pool := range free.pools {
			assets = append(assets, ledger.Asset{
				Name: ledger.AssetSegments, Pool: pool, Class: ledger.ClassScratch, Bytes: free.bytes,
			})
		}
	}
	return assets
}

func (l *Leader) running(a job.Attempt) bool {
	_, ok := l.owns(a)
	return ok
}

// drifted takes what a declaration found.
func (l *Leader) drifted(name job.Node, b *book, d *ledger.Drift) {
	if d.Drifted() {
		l.log.Warn().Str("c2.node.id", string(name)).Interface("drift", d).Msg("node holds other bytes than the ledger had")
	}
	if d.Opened {
		l.openings.note(name, d.Why, time.Now().UTC())
		l.log.Info().Str("c2.node.id", string(name)).Str("why", d.Why).Msg("node has declared what it holds")
	}
	for _, a := range d.Freed {
		b.gone[a] = time.Now() // the book that follows is without them
	}
}

// tookBook takes a node's book as the ledger has it.
func (l *Leader) tookBook(name job.Node, b *book, read *ledger.NodeBook) {
	why := read.ClosedFor(l.books.call.Epoch)
	if why != "" {
		b.mistrust(l.parts.Nodes.Reports()) // the last report may be from before the book was lost
	}
	b.declared, b.capacity, b.boot, b.instance = why == "" && b.compared, read.Capacity, read.Boot, read.Instance
	if mismatch := read.Mismatch(); len(mismatch) > 0 {
		l.log.Error().Str("c2.node.id", string(name)).Interface("pools", mismatch).
			Msg("ledger's sums are not those of its entries")
	}
	b.assets = b.assets[:0:0]
	for _, a := range read.Assets {
		if a.Name != ledger.AssetSegments { // free segments give way by themselves
			b.assets = append(b.assets, a.Asset)
		}
	}
	old := b.entries
	b.entries = map[job.Attempt]*entry{}
	for _, h := range read.Entries {
		b.entries[h.Attempt] = &entry{amounts: h.Amounts, assets: h.Assets, limbo: h.Limbo, since: h.Since}
		t := l.tracks[h.Attempt]
		if t == nil {
			t = &track{node: name, endedAt: time.Now()}
			l.tracks[h.Attempt] = t
		}
		if t.node == name {
			t.amounts = h.Amounts
		}
	}
	for a := range old {
		if t := l.tracks[a]; b.entries[a] == nil && t != nil && !t.running {
			delete(l.tracks, a)
		}
		if b.entries[a] == nil {
			l.seeStopping(a.Job)
		}
	}
	for a := range b.freeing {
		if b.entries[a] == nil && !b.transferring[a] {
			delete(b.freeing, a)
		}
	}
	for a, at := range b.gone {
		if time.Since(at) > 4*l.cfg.Heartbeat { // by then no report that is taken can show it
			delete(b.gone, a)
		}
	}
	if n, ok := l.parts.Nodes.Node(name); ok {
		l.tellNode(&n, &scheduler.Book{Declared: b.declared, Holdings: b.holdings(), Assets: b.assets})
		if !b.declared {
			l.askReport(name)
		}
	}
	if b.again {
		b.again = false
		l.readBook(name)
	}
}

// holdings are what the scheduler has to count. What is being released is gone already.
func (b *book) holdings() []scheduler.Holding {
	var out []scheduler.Holding
	for a, e := range b.entries {
		if b.freeing[a] {
			continue
		}
		h := scheduler.Holding{Attempt: a, Amounts: e.amounts, Limbo: e.limbo}
		for _, key := range e.assets {
			h.Assets = append(h.Assets, key.Name)
		}
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b scheduler.Holding) int { return compare(a.Attempt, b.Attempt) })
	return out
}
