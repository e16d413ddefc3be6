package poseidon

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"
)

// digest is SHA-256 over the 32-byte big-endian encodings of all elements in order.
func digest(vectors ...[]fr.Element) string {
	h := sha256.New()
	for _, vector := range vectors {
		for i := range vector {
			b := vector[i].Bytes()
			h.Write(b[:])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func hexOf(e fr.Element) string {
	b := e.Bytes()
	return hex.EncodeToString(b[:])
}

// checkValues are those of c2-circuit.md 2.9; an empty one is not given there.
type checkValues struct {
	First, Last, Raw, C, M, P, What, V string
}

func TestConstantsHaveTheirPublishedDigests(t *testing.T) {
	t.Parallel()
	for arity, want := range map[int]checkValues{
		2: {
			First: "669f064bfa3ae17a23bd51861dbb4a24501eac92a2758b36a7320a009d6ed3d8",
			Last:  "60dfbfa5d5dd06351a917a05466e5884ed12e38ec24d5bb80be0abe065395e5c",
			Raw:   "0779cd8f8e0d48e5937593d75305b94cdd838329d1bcf3a5144de2c50266d34f",
			C:     "642b02f144e164c0104bd7fb097471e2e0384efdc0843b7435b265c0984de5c6",
			M:     "b1b606f5f5d684f95469cd0d81f74dd370cf217da5c8097560367105122f2807",
			P:     "4f68a6ac7d7fde5243871030eb4ec7a7281bf10ceb289f619c9f104d235e0865",
			What:  "7b320653df4b6b25625f37c1890dd6e8b470db8b5d494a5f9c9275e548345c6d",
			V:     "90a56f265517196a15057cd38124a556cbf54edae87cf4a6d22f15e819942ce1",
		},
		4: {
			Raw:  "e7977c72d08b6934841ec067ac6af315b9945758063a95eb3c6ea19a469a3514",
			C:    "bc4b399a54a3406a26d4a052ef25db111cf6646b4693387d7c51a82b67edb887",
			P:    "23b428b28121e1245a6276efb8a60c827a895d1dc5bd8946e5603d9cdee96bf6",
			What: "db106ba9589e05e8e315d6b163f0f911ee533dc6e45175474f40c6d00f6aeb1e",
			V:    "4d20548fd217901923d8cf1bd54a3064236ff68ee0e131a15b3678450ca5971c",
		},
		8: {
			First: "6ce90d12c4045fe08c3caddb776dd84ac52b4ae7e48cd49443984154f2f4c2f9",
			Last:  "3b3a75eb91b0f723bcc4ab7e449e4a011b8960063efe74670c05e545519d9a8c",
			Raw:   "53d16e2f1c0141cbfd5d8bfa4cb69abcbbd056d13a523f929a93e981434ee9f7",
			C:     "552492cc0303c34869ace5bdb2a67b30dcb5a974d53ac0db9c0cb73cc1917793",
			M:     "483e53dc896deb1617857484f930b0616c0c16d3210d081131dd806aba18cc06",
			P:     "7d236c69ffaa7c366d77c59a41fe35f7089462b4d4a1d2065c3dba8635fec3d3",
			What:  "0ce3e36908f6ea227c4e5e6867f73b1a940bd00719ecf5c8385e85e0ac6f7de3",
			V:     "424ff3e8c9cf72c1b2cdc39d5d6f8fa50ed0fe7601806d9d2e126811bc87faad",
		},
		11: {
			First: "1f6c9576e648b5047399bfc5f38902e0d506f18e0f3ab77de6de096bd089bce4",
			Last:  "4543ca937ff30a73db73c95cf11b2f641c744cc5d6a08d197c29ea4e2aab6a16",
			Raw:   "fc4a4168ce7ec88b94267db09eb377bcc5b7a1f1f40ec3b856e9c2b531f5c829",
			C:     "b40532751ee562784c5fa1a6063fe30bd07ad75c1e8c0a00536b94faf1d9cddf",
			M:     "9ce07bdbc6f75f706c8178a23ca57e4a287f2a9f118cd549fcef0f1a6ec7b8fd",
			P:     "eee57c67b155afb3f92d7f350def78eb7093fb4fe47978f31d0e1dc992f83aeb",
			What:  "09b234ab974a139d52cfc589e66d3dadf03ead655ac1c0ebf3b52154af32f597",
			V:     "45c01766be5faa04380836683c6e7a29069eae31fd374391b71101a381bd7571",
		},
	} {
		p := Of(arity)
		raw := rawConstants(p.Width, p.FullRounds, p.PartialRounds)
		what := make([][]fr.Element, 0, p.PartialRounds)
		v := make([][]fr.Element, 0, p.PartialRounds)
		for _, s := range p.Sparse {
			what = append(what, s.What)
			v = append(v, s.V)
		}
		got := checkValues{
			First: hexOf(raw[0]), Last: hexOf(raw[len(raw)-1]), Raw: digest(raw), C: digest(p.C),
			M: digest(p.M...), P: digest(p.P...), What: digest(what...), V: digest(v...),
		}
		if want.First == "" {
			got.First, got.Last, got.M = "", "", ""
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("arity %d (-want +got):\n%s", arity, diff)
		}
	}
}

func TestConstantCountsFollowTheRoundNumbers(t *testing.T) {
	t.Parallel()
	for arity, want := range map[int][3]int{2: {55, 79, 3}, 4: {56, 96, 15}, 8: {57, 129, 255}, 11: {57, 153, 2047}} {
		p := Of(arity)
		got := [3]int{p.PartialRounds, len(p.C), int(p.Tag.Uint64())}
		if got != want {
			t.Errorf("arity %d: partial rounds, constants, tag = %v, want %v", arity, got, want)
		}
	}
}

func TestMatrixInverse(t *testing.T) {
	t.Parallel()
	// A permuted diagonal forces the search for a pivot.
	m := newMatrix(3)
	m[0][1].SetUint64(2)
	m[1][2].SetUint64(3)
	m[2][0].SetUint64(5)
	identity := newMatrix(2).bordered()
	identity[1][1].SetOne()
	identity[2][2].SetOne()
	for name, m := range map[string]matrix{"permuted": m, "mds": mds(3)} {
		if diff := cmp.Diff(identity, m.mul(m.inverse())); diff != "" {
			t.Errorf("%s times its inverse (-want +got):\n%s", name, diff)
		}
	}
}

func TestUnsupportedArityPanics(t *testing.T) {
	t.Parallel()
	for _, arity := range []int{0, 1, 3, 12} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("arity %d did not panic", arity)
				}
			}()
			Hash(make([]fr.Element, arity))
		}()
	}
}
