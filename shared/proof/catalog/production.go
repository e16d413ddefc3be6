//go:build !toy

package catalog

import "github.com/proofrack/proofrack/shared/circuit"

// testKinds are the kinds that exist in test builds only.
func testKinds() []circuit.Kind { return nil }
