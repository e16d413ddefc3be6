package srs

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"

	"github.com/proofrack/proofrack/shared/internal/fixture"
)

// A real key in another encoding (spec c2-formats.md 6.2, F2): the order of a `.vk` file, but compressed points. Its
// points pass our checks once they are written as the format asks; as it is it must be refused.
func TestForeignKeyPassesOnceItIsUncompressed(t *testing.T) {
	t.Parallel()
	var f struct {
		Key string `json:"vk_compressed"`
	}
	if err := json.Unmarshal(fixture.Bytes(t, "porep-2KiB-foreign-verify.json"), &f); err != nil {
		t.Fatal(err)
	}
	data, err := hex.DecodeString(f.Key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseKey(data); !errors.Is(err, ErrEncoding) && !errors.Is(err, ErrLength) {
		t.Errorf("compressed: got %v", err)
	}
	var key VerifyingKey
	next := func(p interface{ SetBytes([]byte) (int, error) }) {
		t.Helper()
		n, err := p.SetBytes(data)
		if err != nil {
			t.Fatal(err)
		}
		data = data[n:]
	}
	next(&key.AlphaG1)
	next(&key.BetaG1)
	next(&key.BetaG2)
	next(&key.GammaG2)
	next(&key.DeltaG1)
	next(&key.DeltaG2)
	key.IC = make([]bls12381.G1Affine, binary.BigEndian.Uint32(data))
	data = data[countBytes:]
	for i := range key.IC {
		next(&key.IC[i])
	}
	written := key.Append(nil)
	if len(data) != 0 || len(written) != 4708 {
		t.Fatalf("%d bytes left over, %d written", len(data), len(written))
	}
	if _, err := ParseKey(written); err != nil {
		t.Error(err)
	}
}
