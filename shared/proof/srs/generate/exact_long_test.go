//go:build long

package generate

import (
	"testing"

	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

func TestLongExactParametersOf8MiB(t *testing.T) {
	exactFile{
		size:   sdr.Size8MiB,
		counts: srs.Counts{IC: 40, H: 4194303, L: 3842449, A: 3815036, B: 1011290},
		bytes:  1429027896,
		sha:    "ac834880ccd8ac2a7505e63cecfcf2983b7368b662e860f648611cf6d6bac704",
		digest: "b5618923a3f04c8797491d615264cafb",
		keySHA: "8ca897b536e4d6e315196392fda210a36fe45e03fb0c4137d1efb10474806df5",
	}.check(t)
}
