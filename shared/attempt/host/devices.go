package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/internal/groupdir"
	"github.com/proofrack/proofrack/shared/job"
)

// Device is an entry of the node's list of devices.
type Device struct {
	Device job.Device `json:"device"`
	// NUMANode is the one that it is next to, −1 for unknown.
	NUMANode int `json:"numa_node"`
	// Memory is the device's own, 0 for none.
	Memory bytesize.Bytes `json:"memory,omitempty"`
}

const (
	devicesFolder   = "devices"
	deviceSuffix    = ".json"
	deviceBytesMax  = 4 << 10
	devicesMax      = 256
	deviceGroupMode = 0o640
	deviceOwnMode   = 0o600
)

// ListDevice puts a device into the node's list, in place of what the list has under its name.
func (h *Host) ListDevice(d Device) error {
	list := filepath.Join(h.config.Spill.Path, devicesFolder)
	mode := fs.FileMode(deviceOwnMode)
	if h.config.Spill.Group >= 0 {
		mode = deviceGroupMode
	}
	if err := groupdir.Make(list, h.config.Spill.Group); err != nil {
		return fmt.Errorf("list device %s: %w", d.Device, err)
	}
	text, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("list device %s: %w", d.Device, err)
	}
	tmp := filepath.Join(list, ".tmp-"+h.Instance+"-"+string(d.Device))
	if err := os.WriteFile(tmp, text, mode); err != nil {
		return fmt.Errorf("list device %s: %w", d.Device, err)
	}
	if err := os.Rename(tmp, filepath.Join(list, string(d.Device)+deviceSuffix)); err != nil {
		return fmt.Errorf("list device %s: %w", d.Device, err)
	}
	return nil
}

// Devices is the node's list of devices. Files that are no entries are left out.
func (h *Host) Devices() ([]Device, error) {
	folder := filepath.Join(h.config.Spill.Path, devicesFolder)
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read list of devices: %w", err)
	}
	var all []Device
	for _, e := range entries[:min(len(entries), devicesMax)] {
		if d, ok := readDevice(folder, e); ok {
			all = append(all, d)
		}
	}
	return all, nil
}

func readDevice(folder string, e fs.DirEntry) (Device, bool) {
	name, ok := strings.CutSuffix(e.Name(), deviceSuffix)
	info, err := e.Info()
	if !ok || err != nil || !info.Mode().IsRegular() || info.Size() > deviceBytesMax {
		return Device{}, false
	}
	text, err := os.ReadFile(filepath.Join(folder, e.Name()))
	if err != nil {
		return Device{}, false
	}
	var d Device
	if json.Unmarshal(text, &d) != nil || string(d.Device) != name {
		return Device{}, false
	}
	if _, err := job.ParseDevice(name); err != nil {
		return Device{}, false
	}
	if _, err := bytesize.Of(int64(d.Memory)); err != nil {
		return Device{}, false
	}
	return d, true
}

// CPUsOf are the processors next to a device that this process may use; none when that is not known or is all.
func (h *Host) CPUsOf(device job.Device) []int {
	devices, err := h.Devices()
	if err != nil {
		return nil
	}
	for _, d := range devices {
		if d.Device != device || d.NUMANode < 0 {
			continue
		}
		nodes, err := h.facts.NUMANodes()
		if err != nil || len(nodes) < 2 {
			return nil
		}
		for _, n := range nodes {
			if n.ID == d.NUMANode {
				return n.CPUs
			}
		}
	}
	return nil
}

// errPool is for folders that cannot be asked.
func errPool(err error) error { return fault.As(fault.Transient, err) }
