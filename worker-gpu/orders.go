package workergpu

import (
	"context"
	"time"

	"github.com/proofrack/proofrack/shared/wire"
)

// evictMax bounds one eviction: it waits for proofs that run. preloadMax bounds a load: checking large parameters for
// the first time takes minutes.
const (
	evictMax   = time.Minute
	preloadMax = time.Hour
)

// obey follows orders about devices and assets.
func (w *worker) obey(order *wire.Control) {
	w.copies.order(order)
	for _, d := range w.devices {
		switch order.Kind {
		case wire.ControlEvict:
			go w.evict(d, order.Asset)
		case wire.ControlPreload:
			go w.preload(d, order.Circuit)
		case wire.ControlCanary:
			if order.Device == d.config.Device {
				go d.Canary(order.Canary)
			}
		}
	}
}

func (w *worker) evict(d *driven, asset string) {
	ctx, cancel := context.WithTimeout(context.Background(), evictMax)
	defer cancel()
	own, err := d.Evict(ctx, asset)
	if own {
		w.config.Log.Info().Err(err).Str("asset", asset).Str("device", string(d.config.Device)).Msg("evict")
		w.host.Poke()
	}
}

func (w *worker) preload(d *driven, circuit string) {
	ctx, cancel := context.WithTimeout(context.Background(), preloadMax)
	defer cancel()
	err := d.Preload(ctx, circuit)
	w.config.Log.Info().Err(err).Str("circuit", circuit).Str("device", string(d.config.Device)).Msg("preload")
	w.host.Poke()
}
