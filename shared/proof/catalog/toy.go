//go:build toy

package catalog

import (
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/toy"
)

// testKinds are the kinds that exist in test builds only.
func testKinds() []circuit.Kind { return []circuit.Kind{toy.Kind{}, toy.Kind{Other: true}} }
