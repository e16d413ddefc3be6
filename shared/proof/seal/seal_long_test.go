//go:build long

package seal_test

import (
	"testing"

	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/seal/sealtest"
)

func TestLargerSealedSectorsSatisfyEveryRelation(t *testing.T) {
	t.Parallel()
	configs := map[string]sdr.Config{"16MiB": {Size: sdr.Size16MiB, Version: sdr.APIVersion1_1}}
	for _, number := range []sdr.RegisteredProof{1, 11, 16} {
		configs[number.String()] = number.Config()
	}
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			output, sector := sealSector(t, config, name)
			if err := sealtest.Verify(output, &sector); err != nil {
				t.Error(err)
			}
		})
	}
}
