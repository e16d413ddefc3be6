package host

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/job"
)

// claimRAM is the resource of the host's memory among claims.
const claimRAM = "ram"

// takeClaim claims the node's memory beside other agents of the host.
func (h *Host) takeClaim() error {
	c := &h.config
	if c.Memory.Claims == "" {
		return nil
	}
	parts, err := h.claimParts()
	if err != nil {
		return err
	}
	h.Claim, err = agent.TakeClaim(agent.ClaimConfig{
		Folder: c.Memory.Claims, Spill: c.Spill.Path, Node: job.Node(c.Node), Group: c.Spill.Group, Parts: parts,
	})
	if fault.KindOf(err) == fault.Conflict {
		return fault.WithHint(err, "set memory.ram_max and memory.shm_max of all workers of the host so that their sums "+
			"fit, or memory.claims where agents do not share memory")
	}
	return err
}

// claimParts are what the node books at most: RAM, and the spill folder in memory.
func (h *Host) claimParts() ([]agent.ClaimPart, error) {
	memory, err := h.facts.Memory(h.config.Memory.Margin)
	if err != nil {
		return nil, fmt.Errorf("claim memory: %w", err)
	}
	part := func(resource, scope string, most, there, host bytesize.Bytes) agent.ClaimPart {
		return agent.ClaimPart{
			Resource: resource, Scope: scope, All: most == 0, Bytes: least(there, most), Capacity: there, Host: host,
		}
	}
	bounds := &h.config.Memory
	parts := []agent.ClaimPart{
		part(claimRAM, scopeOf(&memory), bounds.RAMMax, memory.Budget, bounds.Margin.Budget(memory.Total)),
	}
	usage, err := h.Spill.Usage()
	if err != nil {
		return nil, fmt.Errorf("claim memory: %w", err)
	}
	for _, u := range usage {
		var stat unix.Stat_t
		if u.Kind != handoff.SHM {
			continue
		}
		if err := unix.Stat(u.Path, &stat); err != nil {
			return nil, fmt.Errorf("claim memory: look at folder %s: %w", u.Path, err)
		}
		name := fmt.Sprintf("shm %d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev))
		parts = append(parts, part(name, "", bounds.SHMMax, u.CapacityBytes, u.CapacityBytes))
	}
	return parts, nil
}

// scopeOf names the control group that bounds this process, the same for all processes of the host; "" is none.
func scopeOf(m *inventory.Memory) string {
	if m.LimitFile == "" {
		return ""
	}
	var stat unix.Stat_t
	if err := unix.Stat(filepath.Dir(m.LimitFile), &stat); err != nil {
		return m.LimitFile
	}
	return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}

// ramShare is what of the memory that there is now is the node's, beside other agents of the host.
func (h *Host) ramShare(m *inventory.Memory) (bytesize.Bytes, error) {
	most := h.config.Memory.RAMMax
	if most == 0 { // it has claimed all, so there is nobody beside it
		return m.Budget, nil
	}
	share, err := h.Claim.Share(claimRAM, scopeOf(m), m.Budget)
	return min(share, most), err
}
