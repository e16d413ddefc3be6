//go:build !toy

package catalog_test

import (
	"errors"
	"testing"

	"github.com/proofrack/proofrack/shared/proof/catalog"
)

func TestProductionBuildsDoNotKnowTheToy(t *testing.T) {
	t.Parallel()
	if _, err := catalog.Find("toy"); !errors.Is(err, catalog.ErrUnknown) {
		t.Fatalf("got %v, want ErrUnknown", err)
	}
}
