package generate

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// exactFile is what the published crates write for the exact scalars (shared/fixtures/README.md).
type exactFile struct {
	size        sdr.SectorSize
	counts      srs.Counts
	bytes       int64
	sha, digest string
	keySHA      string
}

func (want exactFile) check(t *testing.T) {
	t.Helper()
	content := sha256.New()
	r, err := Write(t.Context(), content, porep.ForSize(want.size), exact(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Counts != want.counts || r.Counts.ParamsBytes() != want.bytes {
		t.Errorf("counts %v in %d bytes, want %v in %d", r.Counts, r.Counts.ParamsBytes(), want.counts, want.bytes)
	}
	if got := hex.EncodeToString(content.Sum(nil)); got != want.sha || r.Digest != want.digest {
		t.Errorf("SHA-256 %s and digest %s, want %s and %s", got, r.Digest, want.sha, want.digest)
	}
	key := sha256.Sum256(r.Key.Append(nil))
	if got := hex.EncodeToString(key[:]); got != want.keySHA {
		t.Errorf("key's SHA-256 %s, want %s", got, want.keySHA)
	}
}

func TestExactParametersOf2KiB(t *testing.T) {
	exactFile{
		size:   sdr.Size2KiB,
		counts: srs.Counts{IC: 40, H: 4194303, L: 2685673, A: 2674948, B: 685522},
		bytes:  1114707768,
		sha:    "3ed80990103f1e90c822cac1b66e99dbed1960c35dccbd2bce2b89e26dd590df",
		digest: "9f5d627ce758f2c85a02440d25573543",
		keySHA: "496a68ec766f6f04589b170684a296808bf4e6fb042543f5239a62a48ad6a9be",
	}.check(t)
}
