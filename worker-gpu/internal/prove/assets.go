package prove

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
)

// assetsOf are what proofs of a circuit share on this device, by the names that the ledger has.
func (d *Device) assetsOf(id string) []ledger.Asset {
	c := d.circuit(id)
	own := fmt.Sprintf("%s.%s", d.config.Device, id)
	var out []ledger.Asset
	for _, a := range []ledger.Asset{
		{Name: "srs:" + id, Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: c.SRSBytes},
		{Name: "artifact:" + id, Pool: ledger.PoolRAM, Class: ledger.ClassArtifact, Bytes: c.ArtifactBytes},
		{Name: "engine:" + own, Pool: ledger.PoolRAM, Class: ledger.ClassScratch, Bytes: c.SharedBytes + c.WorkingBytes},
		{Name: "device:" + own, Pool: ledger.PoolVRAM(d.config.Device), Class: ledger.ClassScratch, Bytes: c.DeviceBytes},
	} {
		if a.Bytes > 0 {
			out = append(out, a)
		}
	}
	return out
}

// share is what the proofs of a circuit share on this device. turn has a token while nobody changes it.
//
//	nothing ─ensure─► booked ─► image held, engine has it ─Evict (no users)─► nothing
//	                    └─ load failed: nothing again, its bytes given back
type share struct {
	turn chan struct{}
	// users counts attempts that need it, under the device's lock.
	users int

	// The rest belongs to who has the turn.
	held    []func() error // bookings, and the image
	image   *os.File       // nil where parameters are not kept decoded
	adopted *engine.Engine // the engine that has the image
}

func (d *Device) share(id string) *share {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.shares[id]
	if s == nil {
		s = &share{turn: make(chan struct{}, 1)}
		s.turn <- struct{}{}
		d.shares[id] = s
	}
	return s
}

// use counts an attempt among those that need what a circuit's proofs share: it is not evicted before the function that
// use gives is called.
func (d *Device) use(id string) (done func()) {
	s := d.share(id)
	add := func(n int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		s.users += n
	}
	add(1)
	return func() { add(-1) }
}

// take waits for the turn; give must follow.
func (s *share) take(ctx context.Context) error {
	select {
	case <-s.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *share) give() { s.turn <- struct{}{} }

// ensure makes sure that what a circuit's proofs share is in the node's book, and then in memory; it stays there until
// it is evicted. Whoever asks meanwhile waits for the one load. A load that fails gives its bytes back.
func (d *Device) ensure(ctx context.Context, e *engine.Engine, id string) error {
	s := d.share(id)
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	d.has(e, id)
	if s.held == nil {
		if err := d.book(ctx, s, id); err != nil {
			return err
		}
		if err := d.decode(ctx, s, e, id); err != nil {
			return errors.Join(err, s.drop())
		}
		d.host.Poke()
	}
	return d.adopt(ctx, s, e, id)
}

// book books it.
func (d *Device) book(ctx context.Context, s *share, id string) error {
	d.mu.Lock()
	wanted := d.assetsOf(id)
	d.mu.Unlock()
	s.held = []func() error{}
	for _, a := range wanted {
		release, err := d.host.Book.HoldAsset(ctx, a)
		if err != nil {
			return fault.As(fault.Exhausted, errors.Join(err, s.drop()))
		}
		s.held = append(s.held, release)
	}
	return nil
}

// decode has an engine decode the parameters into the image, unless another device had that done.
func (d *Device) decode(ctx context.Context, s *share, e *engine.Engine, id string) error {
	if d.config.Images == nil {
		return nil
	}
	d.mu.Lock()
	c := d.circuits[id]
	d.mu.Unlock()
	if c == nil || c.loaded == nil {
		return fault.New(fault.Exhausted, "device %s is not ready for circuit %s", d.config.Device, id)
	}
	began := time.Now()
	image, release, err := d.config.Images.Hold(ctx, id, c.loaded.Digest, int64(c.loaded.Image),
		func(f *os.File) error { return e.WriteImage(ctx, id, f) })
	if err != nil {
		return d.unready(id, fmt.Errorf("decode parameters of circuit %s: %w", id, err))
	}
	d.config.Log.Info().Str("circuit", id).Stringer("bytes", c.loaded.Image).Dur("took", time.Since(began)).
		Msg("parameters are decoded in memory")
	s.image, s.held = image, append(s.held, release)
	return nil
}

// unready notes that parameters which were ready cannot be loaded again: they are looked for until they can. The
// attempt is handed back then.
func (d *Device) unready(id string, err error) error {
	if kind := fault.KindOf(err); kind != fault.NotFound && kind != fault.Corrupt {
		return err
	}
	d.change(func() { d.circuits[id] = &circuitState{err: err} })
	return fault.As(fault.Exhausted, err)
}

// adopt gives an engine the image, if there is one and it has it not yet.
func (d *Device) adopt(ctx context.Context, s *share, e *engine.Engine, id string) error {
	if s.image == nil || s.adopted == e {
		return nil
	}
	if _, err := e.Load(ctx, id, s.image); err != nil {
		return fmt.Errorf("map decoded parameters of circuit %s: %w", id, err)
	}
	s.adopted = e
	return nil
}

// loadInto has a new engine load a circuit: the image that is kept, so that nothing is read and decoded again, else
// the file.
func (d *Device) loadInto(ctx context.Context, e *engine.Engine, id string) (engine.Loaded, error) {
	s := d.share(id)
	if err := s.take(ctx); err != nil {
		return engine.Loaded{}, err
	}
	defer s.give()
	d.mu.Lock()
	renewed := d.renewed[id]
	delete(d.renewed, id)
	d.mu.Unlock()
	if renewed { // no engine has it any more
		if err := s.drop(); err != nil {
			return engine.Loaded{}, err
		}
	}
	loaded, err := e.Load(ctx, id, s.image)
	if err == nil && s.image != nil {
		s.adopted = e
	}
	return loaded, err
}

// drop gives all of it back; it must run with the turn.
func (s *share) drop() error {
	var err error
	for _, release := range s.held {
		err = errors.Join(err, release())
	}
	s.held, s.image, s.adopted = nil, nil, nil
	return err
}

// Preload books and loads what proofs of a circuit share, before the first of them comes. Errors: kind Exhausted when
// the device is not ready for it or the node has no room.
func (d *Device) Preload(ctx context.Context, id string) error {
	if !slices.ContainsFunc(d.config.Circuits, func(c circuit.Circuit) bool { return c.ID() == id }) {
		return fault.New(fault.NotFound, "device %s does not prove circuit %s", d.config.Device, id)
	}
	defer d.use(id)()
	e, _, err := d.serving(ctx, id)
	if err != nil {
		return err
	}
	return d.judge(d.ensure(ctx, e, id))
}

// Evict gives back what a circuit's proofs share, and tells whether the asset is one of this device. Errors: kind
// Conflict while attempts use it.
func (d *Device) Evict(ctx context.Context, asset string) (bool, error) {
	id := d.circuitOf(asset)
	if id == "" {
		return false, nil
	}
	s := d.share(id)
	if err := d.unused(s, id); err != nil {
		return true, err
	}
	if err := d.lane.enter(ctx, true); err != nil { // nothing starts or finishes meanwhile
		return true, err
	}
	defer d.lane.pass()
	defer d.lane.leave()
	if err := s.take(ctx); err != nil {
		return true, err
	}
	defer s.give()
	if err := d.unused(s, id); err != nil {
		return true, err
	}
	d.mu.Lock()
	e := d.engine
	d.mu.Unlock()
	if e != nil {
		if err := e.Evict(ctx, id); err != nil && !gone(e) {
			return true, err
		}
	}
	if s.held != nil {
		d.config.Meters.evicted(d, id)
	}
	err := s.drop()
	d.host.Poke()
	return true, err
}

func (d *Device) unused(s *share, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.users > 0 {
		return fault.New(fault.Conflict, "evict circuit %s on device %s: %d attempts use it", id, d.config.Device, s.users)
	}
	return nil
}

// circuitOf is the circuit of an asset of this device, "" for others.
func (d *Device) circuitOf(asset string) string {
	kind, name, _ := strings.Cut(asset, ":")
	switch kind {
	case "srs", "artifact":
	case "engine", "device":
		var own bool
		if name, own = strings.CutPrefix(name, string(d.config.Device)+"."); !own {
			return ""
		}
	default:
		return ""
	}
	for _, c := range d.config.Circuits {
		if c.ID() == name {
			return name
		}
	}
	return ""
}
