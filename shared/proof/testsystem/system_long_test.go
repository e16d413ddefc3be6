//go:build long

package testsystem_test

import (
	"testing"

	"github.com/proofrack/proofrack/shared/proof/testsystem"
)

// longRowsMax leaves out F26 and F27: the survey of package porep hashes them together with their densities.
const longRowsMax = 100_000_000

func TestLongLargeSystemsHaveTheirHash(t *testing.T) {
	for _, s := range testsystem.All() {
		if s.Rows <= quickRowsMax || s.Rows > longRowsMax {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			check(t, s)
		})
	}
}
