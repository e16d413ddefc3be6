package prove

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
	"github.com/proofrack/proofrack/worker-gpu/internal/residency"
)

// Why an engine is replaced on purpose although it has no fault.
const (
	recycleDrift  = "device memory drifts"
	recycleParams = "a parameter file was replaced"
)

// keepLoaded asks a new engine for all circuits, one after another, then again for those that are not ready when their
// parameter files change, and has the engine replaced when the file of a ready one was. Checking large parameters for
// the first time takes minutes; the device proves meanwhile what it can.
func (d *Device) keepLoaded(ctx context.Context, e *engine.Engine) {
	for _, c := range d.config.Circuits {
		d.load(ctx, e, c.ID(), stateOf(residency.ParamsPath(d.config.Params, c)))
	}
	ticker := time.NewTicker(d.config.PollEvery)
	defer ticker.Stop()
	seen := map[string]fileState{} // of ready circuits, at the last look
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, c := range d.config.Circuits {
			id, now := c.ID(), stateOf(residency.ParamsPath(d.config.Params, c))
			d.mu.Lock()
			s := d.circuits[id]
			d.mu.Unlock()
			switch {
			case s == nil || s.loaded == nil && s.file != now:
				d.load(ctx, e, id, now)
			case s.replacedBy(now) && seen[id] == now: // whole, as far as can be seen
				d.renew(id)
				return // the next engine loads all
			}
			seen[id] = now
		}
	}
}

// fileState tells states of a parameter file and of its folder's manifest apart; "" is for a file that is not there.
type fileState struct{ params, manifest string }

func stateOf(path string) fileState {
	manifest := filepath.Join(filepath.Dir(path), srs.ManifestName)
	return fileState{params: stampOf(path), manifest: stampOf(manifest)}
}

func stampOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	var inode uint64
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = s.Ino
	}
	return fmt.Sprintf("%d %d %d", inode, info.Size(), info.ModTime().UnixNano())
}

// replacedBy tells whether a circuit was loaded from another parameter file than is there now. One that was only taken
// away serves on.
func (s *circuitState) replacedBy(now fileState) bool {
	return s != nil && s.loaded != nil && now.params != "" && now.params != s.file.params
}

// renew has the engine replaced as soon as it is idle, and a circuit loaded from its file then.
func (d *Device) renew(id string) {
	d.config.Log.Info().Str("circuit", id).Str("device", string(d.config.Device)).
		Msg("the parameter file was replaced: it is loaded when the proofs that run are done")
	d.change(func() {
		d.forget(id)
		if d.recycle == "" {
			d.recycle = recycleParams
		}
	})
}

// forget has nothing more started with a circuit's parameters until they were loaded from their file; it must run under
// the device's lock.
func (d *Device) forget(id string) {
	delete(d.circuits, id)
	d.renewed[id] = true
}

// forgetReplaced does so for all circuits whose file was replaced while there was no engine to look.
func (d *Device) forgetReplaced() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.config.Circuits {
		if d.circuits[c.ID()].replacedBy(stateOf(residency.ParamsPath(d.config.Params, c))) {
			d.forget(c.ID())
		}
	}
}

// load asks the engine for a circuit and notes what came of it.
func (d *Device) load(ctx context.Context, e *engine.Engine, id string, file fileState) {
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
			d.config.Meters.loaded(d, id, 0, err)
			d.config.Log.Error().Err(err).Str("circuit", id).Msg("parameters cannot be used")
		}
	} else {
		s.loaded = &loaded
		d.config.Meters.loaded(d, id, loaded.Seconds, nil)
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
