package dispatch

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// roomMax is how long an operator's order waits for evictions before it says that they go on; roomLook is how often it
// looks.
const (
	roomMax  = 5 * time.Second
	roomLook = 50 * time.Millisecond
)

// bookWithRoom books a reservation; where the node has no room it has idle assets evicted, if these are enough.
// Errors: a *ledger.Refusal when they are not, kind Exhausted while they are on their way out.
func (l *Leader) bookWithRoom(ctx context.Context, call ledger.Call, want *ledger.Reservation) error {
	ordered := map[string]time.Time{} // to leave
	for began := time.Now(); ; {
		callCtx, cancel := l.call(ctx)
		err := l.parts.Ledger.Reserve(callCtx, call, want)
		cancel()
		refusal := (*ledger.Refusal)(nil)
		if !errors.As(err, &refusal) || refusal.Closed != "" || refusal.Never() {
			return err
		}
		enough, roomErr := l.makeRoom(ctx, want, ordered)
		switch {
		case roomErr != nil:
			return roomErr
		case !enough:
			return err
		case time.Since(began) >= roomMax:
			return fault.WithHint(fault.As(fault.Exhausted, err),
				"idle assets make room, ask again in a moment: "+strings.Join(slices.Sorted(maps.Keys(ordered)), ", "))
		}
		select {
		case <-ctx.Done():
			return fault.As(fault.Transient, ctx.Err())
		case <-time.After(roomLook):
		}
	}
}

// makeRoom asks a node to unload idle assets for others, adds to ordered which are on their way out, and tells whether
// these are enough. It asks for none when all that are idle would not be.
func (l *Leader) makeRoom(
	ctx context.Context, want *ledger.Reservation, ordered map[string]time.Time,
) (enough bool, err error) {
	book, err := l.nodeBook(ctx, want.Node)
	if err != nil {
		return false, err
	}
	askErr := l.Ask(ctx, func() {
		b := l.book(want.Node)
		maps.Copy(ordered, b.evicting) // the ledger's book may have them for another moment after they have gone
		var chosen []string
		chosen, enough = l.victims(book, want.Assets, ordered)
		for _, name := range chosen {
			b.evicting[name], ordered[name] = time.Now(), time.Now()
			l.sendControl(&wire.Control{
				Node: want.Node, Kind: wire.ControlEvict, Asset: name, Reason: "room for a preload",
			})
		}
	})
	return enough, askErr
}

// victims chooses idle assets of a node that have to go for others to be booked, beside those that are leaving: by how
// long they were not used, in units of the time to load them again, as the scheduler does for attempts. It tells
// whether they are enough.
func (l *Leader) victims(
	book *ledger.NodeBook, want []ledger.Asset, leaving map[string]time.Time,
) (names []string, enough bool) {
	have, lack := map[ledger.AssetKey]bytesize.Bytes{}, ledger.Amounts{}
	for _, a := range book.Assets {
		have[a.Key()] = a.Bytes
	}
	wanted := map[string]bool{}
	for _, a := range want {
		wanted[a.Name] = true
		if _, ok := lack[a.Pool]; !ok {
			lack[a.Pool] = -book.Free(a.Pool)
		}
		lack[a.Pool] += max(0, a.Bytes-have[a.Key()])
	}
	var idle []ledger.AssetEntry
	for _, a := range book.Assets {
		_, goes := leaving[a.Name]
		_, short := lack[a.Pool]
		switch {
		case goes && short:
			lack[a.Pool] -= a.Bytes
		case !goes && short && !wanted[a.Name] && idleFor(book, &a) >= l.idleMin(&a):
			idle = append(idle, a)
		}
	}
	weight := func(a *ledger.AssetEntry) float64 { return float64(idleFor(book, a)) / float64(a.Bytes) }
	slices.SortStableFunc(idle, func(a, b ledger.AssetEntry) int {
		return cmp.Or(cmp.Compare(weight(&b), weight(&a)), cmp.Compare(a.Name, b.Name))
	})
	for _, a := range idle {
		if lack[a.Pool] > 0 {
			lack[a.Pool] -= a.Bytes
			names = append(names, a.Name)
		}
	}
	for _, missing := range lack {
		if missing > 0 {
			return nil, false
		}
	}
	return names, true
}

// idleFor is since when an asset has not been used, by the ledger's clock; negative while it is, and for free segments,
// which give way by themselves.
func idleFor(book *ledger.NodeBook, a *ledger.AssetEntry) time.Duration {
	if a.Users > 0 || a.Bytes <= 0 || a.Name == ledger.AssetSegments {
		return -1
	}
	return max(0, book.Now.Sub(a.UsedAt))
}

// idleMin is how long an asset is kept from others, as the scheduler keeps it.
func (l *Leader) idleMin(a *ledger.AssetEntry) time.Duration {
	c := &l.cfg.Scheduler
	return min(time.Duration(float64(a.Bytes)/float64(c.LoadRate)*float64(time.Second)), c.EvictIdle)
}
