package workergpu

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/assetcopy"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/wire"
	"github.com/proofrack/proofrack/worker-gpu/internal/residency"
)

// giveStall is how long who fetches a file may take nothing of it.
const giveStall = 30 * time.Second

// copies are parameter files on their way to and from other nodes. A copy ends with the process, and goes on where it
// was when it is ordered again.
type copies struct {
	config Config
	giver  *assetcopy.Giver
	life   context.Context //nolint:containedctx // what is ordered lives as long as the worker
	stop   context.CancelFunc
	poke   func()

	mu      sync.Mutex
	url     string              // where files are given, "" while they are not
	fetches map[string]*copying // by circuit
	running sync.WaitGroup
}

// copying is one that goes on. Its state is the copies' lock's.
type copying struct {
	state wire.Loading
	stop  context.CancelFunc
	done  chan struct{}
}

func newCopies(config Config) (*copies, error) {
	c := &copies{config: config, fetches: map[string]*copying{}, poke: func() {}}
	c.life, c.stop = context.WithCancel(context.Background())
	var err error
	c.giver, err = assetcopy.NewGiver(assetcopy.GiverConfig{
		Find: c.find, RateMax: config.Assets.RateMax, StallMax: giveStall,
	})
	return c, err
}

// service gives files to other nodes.
func (c *copies) service() service.Service {
	s := service.HTTP(service.HTTPConfig{Listen: c.config.Assets.Listen}, c.giver, c.bound)
	s.Name = "assets"
	return s
}

// find gives the parameter file of a circuit that this build knows.
func (c *copies) find(id string) (string, error) {
	known, err := catalog.Find(id)
	if err != nil {
		return "", err
	}
	return residency.ParamsPath(c.config.Prove.Params, known), nil
}

// bound notes where files are given.
func (c *copies) bound(at net.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.url = c.config.Assets.Advertise
	if tcp, ok := at.(*net.TCPAddr); ok && c.url == "" && !tcp.IP.IsUnspecified() {
		c.url = "http://" + at.String()
	}
	c.config.Log.Info().Stringer("address", at).Str("url", c.url).Msg("parameter files are given")
}

// describe completes a beat.
func (c *copies) describe(b *wire.Beat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.AssetsURL = c.url
	for i := range b.Devices {
		for k := range b.Devices[i].Circuits {
			state := &b.Devices[i].Circuits[k]
			if f := c.fetches[state.Circuit]; f != nil {
				now := f.state
				state.Loading = &now
			}
		}
	}
}

// order follows an order about a copy.
func (c *copies) order(o *wire.Control) {
	switch o.Kind {
	case wire.ControlShare:
		c.giver.Grant(o.Transfer.Circuit, o.Transfer.Token, o.Transfer.Expires)
	case wire.ControlFetch:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.life.Err() != nil {
			return
		}
		// A new order comes with a new token: it takes over from one that goes on, and from what has come.
		before := c.fetches[o.Transfer.Circuit]
		now := &copying{state: wire.Loading{What: "copy", Total: o.Transfer.Bytes}, done: make(chan struct{})}
		var ctx context.Context
		ctx, now.stop = context.WithDeadline(c.life, o.Transfer.Expires)
		c.fetches[o.Transfer.Circuit] = now
		c.running.Go(func() {
			if before != nil {
				before.stop()
				<-before.done
			}
			c.fetch(ctx, now, o.Transfer)
		})
	}
}

// fetch fetches a file; the devices find it by themselves.
func (c *copies) fetch(ctx context.Context, f *copying, t *wire.Transfer) {
	defer close(f.done)
	defer f.stop()
	c.poke()
	began := time.Now()
	err := c.fetchFile(ctx, f, t)
	c.config.Log.Info().Err(err).Str("circuit", t.Circuit).Str("from", t.URL).Stringer("bytes", t.Bytes).
		Dur("took", time.Since(began)).Msg("copy of a parameter file ended")
	c.mu.Lock()
	if c.fetches[t.Circuit] == f {
		delete(c.fetches, t.Circuit)
	}
	c.mu.Unlock()
	c.poke()
}

func (c *copies) fetchFile(ctx context.Context, f *copying, t *wire.Transfer) error {
	known, err := catalog.Find(t.Circuit)
	if err != nil {
		return fault.As(fault.Invalid, fmt.Errorf("copy parameters: %w", err))
	}
	fetcher, err := assetcopy.NewFetcher(assetcopy.DefaultFetcherConfig(c.config.Prove.Params))
	if err != nil {
		return err
	}
	defer fetcher.Close()
	return fetcher.Fetch(ctx, wanted(known, t), func(done bytesize.Bytes) {
		c.mu.Lock()
		defer c.mu.Unlock()
		f.state.Done = done
	})
}

func wanted(c circuit.Circuit, t *wire.Transfer) assetcopy.Want {
	return assetcopy.Want{
		URL: t.URL, Circuit: t.Circuit, Token: t.Token, Name: c.ParamsName() + srs.ParamsExtension, Bytes: t.Bytes,
		Digest: t.Digest, Development: t.Development,
	}
}

// close ends all copies.
func (c *copies) close() {
	c.mu.Lock() // no order comes between
	c.stop()
	c.mu.Unlock()
	c.running.Wait()
}
