package catalog_test

import (
	"errors"
	"testing"

	"github.com/proofrack/proofrack/shared/proof/catalog"
)

func TestEveryCircuitIsFoundByIDAndByItsFiles(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range catalog.Circuits() {
		if seen[c.ID()] || seen[c.ParamsName()] {
			t.Errorf("circuit %s: id or parameter name is used twice", c.ID())
		}
		seen[c.ID()], seen[c.ParamsName()] = true, true
		byID, err := catalog.Find(c.ID())
		if err != nil || byID.ID() != c.ID() {
			t.Errorf("find %s: got %v, %v", c.ID(), byID, err)
		}
		byName, err := catalog.FindByParamsName(c.ParamsName())
		if err != nil || byName.ID() != c.ID() {
			t.Errorf("find %s: got %v, %v", c.ParamsName(), byName, err)
		}
	}
	if !seen["porep-32GiB"] {
		t.Error("the 32 GiB circuit is missing")
	}
	if _, err := catalog.Find("porep-3GiB"); !errors.Is(err, catalog.ErrUnknown) {
		t.Errorf("unknown circuit: got %v", err)
	}
}

func TestKindsAreFoundByName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "porep"} {
		if k, err := catalog.FindKind(name); err != nil || k.Name() != "porep" {
			t.Errorf("FindKind(%q) = %v, %v", name, k, err)
		}
	}
	if _, err := catalog.FindKind("post"); !errors.Is(err, catalog.ErrUnknown) {
		t.Errorf("an unknown kind: %v", err)
	}
}
