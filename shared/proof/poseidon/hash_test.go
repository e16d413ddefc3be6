package poseidon

import (
	"strconv"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"pgregory.net/rapid"
)

func TestHashEqualsPublishedVectors(t *testing.T) {
	t.Parallel()
	for arity, want := range map[int]string{
		2:  "396508d75e76a56b739e0fd902efe161a6fba9339d05a69d2e203c369a02e7ff",
		4:  "58a54b10a9e5848a00db3c6579229399fb6b4605bf1327ec019814ff6662075d",
		8:  "2394611da3a5de5512010042116770774b682e9d9cc4aed92a9934f56d38a5e6",
		11: "0c0fc1b2e5227f286ca537e232ebe87a09f3dcd8ccb08fc1cee3bbc32b693163",
	} {
		inputs := make([]fr.Element, arity)
		for i := range inputs {
			inputs[i].SetUint64(uint64(i))
		}
		if got := hexOf(Hash(inputs)); got != want {
			t.Errorf("arity %d: got %s, want %s", arity, got, want)
		}
		if arity == 2 {
			if got := hexOf(Hash2(&inputs[0], &inputs[1])); got != want {
				t.Errorf("Hash2: got %s, want %s", got, want)
			}
		}
	}
}

// textbook is the definition without any compression: raw constants before every S-box layer and the MDS matrix in
// every round.
func textbook(p *Params, raw, inputs []fr.Element) fr.Element {
	s := append([]fr.Element{p.Tag}, inputs...)
	for round := range p.FullRounds + p.PartialRounds {
		for i := range s {
			s[i].Add(&s[i], &raw[round*p.Width+i])
		}
		partial := round >= halfFullRounds && round < halfFullRounds+p.PartialRounds
		for i := range s {
			if i == 0 || !partial {
				fifthPower(&s[i])
			}
		}
		s = matrix(p.M).leftMul(s)
	}
	return s[1]
}

func TestHashEqualsTextbookDefinition(t *testing.T) {
	t.Parallel()
	raw := map[int][]fr.Element{}
	for _, arity := range []int{2, 4, 8, 11} {
		p := Of(arity)
		raw[arity] = rawConstants(p.Width, p.FullRounds, p.PartialRounds)
	}
	rapid.Check(t, func(t *rapid.T) {
		arity := rapid.SampledFrom([]int{2, 4, 8, 11}).Draw(t, "arity")
		inputs := make([]fr.Element, arity)
		for i := range inputs {
			inputs[i].SetBytes(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "input"))
		}
		if got, want := Hash(inputs), textbook(Of(arity), raw[arity], inputs); !got.Equal(&want) {
			t.Fatalf("hash of %v: got %s, want %s", inputs, hexOf(got), hexOf(want))
		}
	})
}

func TestHashAllocatesNothing(t *testing.T) {
	inputs := make([]fr.Element, 11)
	Hash(inputs)
	if got := testing.AllocsPerRun(10, func() { Hash(inputs) }); got != 0 {
		t.Errorf("allocations per hash = %v, want 0", got)
	}
}

func BenchmarkPoseidonHash(b *testing.B) {
	for _, arity := range []int{2, 8, 11} {
		inputs := make([]fr.Element, arity)
		for i := range inputs {
			inputs[i].MustSetRandom()
		}
		Hash(inputs)
		b.Run("arity="+strconv.Itoa(arity), func(b *testing.B) {
			for b.Loop() {
				inputs[0] = Hash(inputs)
			}
		})
	}
}
