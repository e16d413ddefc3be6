package prove

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/ledger"
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

// book makes sure that what a circuit's proofs share is in the node's book; it stays there until it is evicted.
func (d *Device) book(ctx context.Context, id string) error {
	d.mu.Lock()
	_, booked := d.assets[id]
	wanted := d.assetsOf(id)
	d.mu.Unlock()
	if booked {
		return nil
	}
	var held []func() error
	for _, a := range wanted {
		release, err := d.host.Book.HoldAsset(ctx, a)
		if err != nil {
			for _, undo := range held {
				err = errors.Join(err, undo())
			}
			return fault.As(fault.Exhausted, err)
		}
		held = append(held, release)
	}
	d.change(func() { d.assets[id] = held })
	return nil
}

// Evict gives back what a circuit's proofs share, when nothing uses it, and tells whether the asset is one of this
// device.
func (d *Device) Evict(ctx context.Context, asset string) (bool, error) {
	id := d.circuitOf(asset)
	if id == "" {
		return false, nil
	}
	if err := d.lane.enter(ctx, true); err != nil { // nothing starts or finishes meanwhile
		return true, err
	}
	defer d.lane.pass()
	defer d.lane.leave()
	d.mu.Lock()
	e, held := d.engine, d.assets[id]
	d.mu.Unlock()
	if e != nil {
		if err := e.Evict(ctx, id); err != nil {
			return true, err
		}
	}
	var err error
	for _, release := range held {
		err = errors.Join(err, release())
	}
	d.change(func() { delete(d.assets, id) })
	return true, err
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
