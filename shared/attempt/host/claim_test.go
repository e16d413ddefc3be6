package host

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/ledger"
)

// memory.claims: two nodes of one host get no more together than there is, though their spill folders differ; with a
// folder of its own, or none, each counts as alone.
func TestNodesOfOneHostShareItsMemory(t *testing.T) {
	t.Parallel()
	claims := t.TempDir()
	open := func(node, folder string, most bytesize.Bytes) (*Host, error) {
		h := newHost(t)
		h.config.Node, h.config.Memory.Claims, h.config.Memory.RAMMax = node, folder, most
		err := h.takeClaim()
		t.Cleanup(func() {
			if err := h.Claim.Close(); err != nil {
				t.Error(err)
			}
		})
		return h, err
	}
	first, err := open("n1", claims, 40*bytesize.GiB)
	if err != nil {
		t.Fatal(err)
	}
	_, err = open("n2", claims, 0)
	var refusal *agent.ClaimRefusal
	if !errors.As(err, &refusal) || refusal.Others[0].Node != "n1" || refusal.Resource != claimRAM || !refusal.All ||
		!strings.Contains(fault.ReportOf("", err).Hint, "memory.ram_max") {
		t.Fatalf("a second node claimed all: %v", err)
	}
	if _, err := open("n2", claims, 40*bytesize.GiB); fault.KindOf(err) != fault.Conflict {
		t.Errorf("80 of 64 GiB are claimed: %v", err)
	}
	if _, err := open("n2", claims, 20*bytesize.GiB); err != nil {
		t.Error(err)
	}
	if _, err := open("n3", t.TempDir(), 0); err != nil {
		t.Error(err)
	}
	if _, err := open("n4", "", 0); err != nil {
		t.Error(err)
	}
	capacity, err := first.Capacity()
	if err != nil || capacity[ledger.PoolRAM] != 40*bytesize.GiB {
		t.Errorf("%s, %v", capacity, err)
	}
	config := DefaultConfig()
	config.Node, config.Memory.Claims = "n1", "relative"
	if config.Validate() == nil {
		t.Error("a relative folder is valid")
	}
	config.Memory.Claims = DefaultConfig().Memory.Claims
	if !filepath.IsAbs(config.Memory.Claims) || config.Validate() != nil {
		t.Errorf("the default: %v", config.Validate())
	}
}
