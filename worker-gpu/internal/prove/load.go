package prove

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
	"github.com/proofrack/proofrack/worker-gpu/internal/residency"
)

const recycleDrift = "device memory drifts"

// keepLoaded asks a new engine for all circuits, one after another, and then again for those that are not ready when
// their parameter files change. Checking large parameters for the first time takes minutes; the device proves
// meanwhile what it can.
func (d *Device) keepLoaded(ctx context.Context, e *engine.Engine) {
	for _, c := range d.config.Circuits {
		d.load(ctx, e, c.ID(), fileState(residency.ParamsPath(d.config.Params, c)))
	}
	ticker := time.NewTicker(d.config.PollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, c := range d.config.Circuits {
			d.mu.Lock()
			s := d.circuits[c.ID()]
			d.mu.Unlock()
			now := fileState(residency.ParamsPath(d.config.Params, c))
			if s == nil || s.loaded == nil && s.file != now {
				d.load(ctx, e, c.ID(), now)
			}
		}
	}
}

// fileState tells states of a file and of its folder's manifest apart.
func fileState(path string) string {
	var b strings.Builder
	manifest := path[:strings.LastIndexByte(path, os.PathSeparator)+1] + srs.ManifestName
	for _, p := range []string{path, manifest} {
		if info, err := os.Stat(p); err == nil {
			fmt.Fprintf(&b, "%d %d;", info.Size(), info.ModTime().UnixNano())
		} else {
			b.WriteString("none;")
		}
	}
	return b.String()
}

// load asks the engine for a circuit and notes what came of it.
func (d *Device) load(ctx context.Context, e *engine.Engine, id, file string) {
	if ctx.Err() != nil {
		return
	}
	s := &circuitState{file: file}
	loaded, err := d.loadInto(ctx, e, id)
	if err != nil && (ctx.Err() != nil || gone(e)) {
		return // that says nothing about the circuit
	}
	if err == nil {
		s.key, err = prepareKey(loaded.Key)
	}
	if err != nil {
		s.err = err
		if fault.KindOf(err) != fault.NotFound {
			d.config.Log.Error().Err(err).Str("circuit", id).Msg("parameters cannot be used")
		}
	} else {
		s.loaded = &loaded
		d.config.Log.Info().Str("circuit", id).Str("digest", loaded.Digest).Float64("seconds", loaded.Seconds).
			Msg("parameters are ready")
	}
	d.change(func() { d.circuits[id] = s })
}

func prepareKey(data []byte) (*groth16.PreparedKey, error) {
	key, err := srs.ParseKey(data)
	if err != nil {
		return nil, err
	}
	return groth16.Prepare(key)
}
