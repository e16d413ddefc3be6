package gadget_test

import (
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/gadget"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// counted is a walk and the hash its constraint system must have (spec c2-circuit.md 6.3).
type counted struct {
	walk              func(s *r1cs.System)
	inputs, aux, rows int
	hash              string
}

func (c counted) check(t *testing.T) {
	t.Helper()
	counter := r1cs.NewSystem(r1cs.Start(), nil, nil)
	c.walk(counter)
	totals := counter.Position()
	if totals.Inputs != c.inputs || totals.Aux != c.aux || totals.Rows != c.rows {
		t.Fatalf("inputs, aux, rows: got %d, %d, %d, want %d, %d, %d",
			totals.Inputs, totals.Aux, totals.Rows, c.inputs, c.aux, c.rows)
	}
	digest := r1cs.NewDigest(totals)
	structure := r1cs.NewSystem(r1cs.Start(), digest, nil)
	c.walk(structure)
	if structure.Position() != totals {
		t.Fatalf("position with structure %+v, without %+v", structure.Position(), totals)
	}
	if got := digest.Hex(); got != c.hash {
		t.Fatalf("hash: got %s, want %s", got, c.hash)
	}
}

func alloc(s *r1cs.System, n int) []r1cs.Num {
	nums := make([]r1cs.Num, n)
	for i := range nums {
		nums[i] = s.Alloc(fr.Element{})
	}
	return nums
}

func words(n int, alloc func(int, uint64) r1cs.Bits) []r1cs.Bits {
	w := make([]r1cs.Bits, n)
	for i := range w {
		w[i] = alloc(32, 0)
	}
	return w
}

// message are words of message bits allocated most significant first, as bit streams are.
func message(n int, alloc func(int, uint64) r1cs.Bits) []r1cs.Bits {
	w := words(n, alloc)
	for i := range w {
		w[i] = w[i].ReverseBits()
	}
	return w
}

func porFixture(hash gadget.NodeHash, private bool, arities ...int) func(s *r1cs.System) {
	return func(s *r1cs.System) {
		leaf := s.Alloc(fr.Element{})
		path := make([]gadget.PathElement, len(arities))
		for i, a := range arities {
			path[i].Siblings = make([]fr.Element, a-1)
		}
		var root r1cs.Num
		gadget.Inclusion(s, leaf, path, hash, func() r1cs.Num {
			root = s.Alloc(fr.Element{})
			return root
		})
		if !private {
			s.Inputize(root)
		}
	}
}

func poseidonFixture(arity int) func(s *r1cs.System) {
	return func(s *r1cs.System) { gadget.Poseidon(s, alloc(s, arity)) }
}

func insertFixture(indexBits int) func(s *r1cs.System) {
	return func(s *r1cs.System) {
		x := s.Alloc(fr.Element{})
		index := s.AllocBits(indexBits, 0)
		gadget.Insert(s, x, index, alloc(s, 1<<indexBits-1))
	}
}

// paddingBlock is the second block of a 64-byte message.
func paddingBlock() gadget.Block {
	var block gadget.Block
	for i := range block {
		block[i] = r1cs.ConstBits(32, 0)
	}
	block[0] = r1cs.ConstBits(32, 1<<31)
	block[15] = r1cs.ConstBits(32, 512)
	return block
}

func TestGadgetsHaveTheirConstraintSystemHash(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]counted{
		"F1 compression of 512 bits": {func(s *r1cs.System) {
			gadget.Compress(s, gadget.Block(message(16, s.AllocBits)), gadget.SHA256IV())
		}, 1, 26326, 26352, "a91be46c89fe4cb18f85d99956bf9b1afe0a96d1b6c960a30d4e9dcafcf501ba"},
		"F2 sha256 of 512 bits": {func(s *r1cs.System) {
			gadget.SHA256(s, message(16, s.AllocBits))
		}, 1, 45340, 45386, "39b920088193af138e8d3494179b1d9a20442bb23e28e65028b068c6a9e48771"},
		"F3 Poseidon 2": {poseidonFixture(2), 1, 313, 311,
			"658f013f99360e164ad8e7f96290944601cc064f93c153d9ea7ac1275927175f"},
		"F4 Poseidon 4": {poseidonFixture(4), 1, 381, 377,
			"2360602a7c4555d454b46891236273f4ae308090bc916fdcef1fb81d00ebbe70"},
		"F5 Poseidon 8": {poseidonFixture(8), 1, 513, 505,
			"ab50aeda63344f7125999ef5c4af7777380b9015ec82ad48bac2213e9353b163"},
		"F6 Poseidon 11": {poseidonFixture(11), 1, 609, 598,
			"e94a28106cbb9a718e525f0f2593ce3b138350047854ebcc3c83472ed482a6f6"},
		"F8 PoR 2-0-0 SHA-256": {porFixture(gadget.SHA256Node, false, 2, 2, 2, 2, 2, 2), 3, 272012, 272295,
			"06101b213e985a06aa97367fb756d504912d2edfa7169fe7390f3563e2b7bdbf"},
		"F9 PoR 2-0-0": {porFixture(gadget.Poseidon, false, 2, 2, 2, 2, 2, 2), 3, 1892, 1887,
			"e4a6b97ab322b5265befdbededdd16353db058e22cd88a9a9960f0f32efb95e9"},
		"F10 PoR 4-0-0": {porFixture(gadget.Poseidon, false, 4, 4, 4), 3, 1172, 1164,
			"ec45a446c4037ab2077accf70eff6ac48a5beba219648491be3e67a3f4b0c68c"},
		"F11 PoR 8-0-0": {porFixture(gadget.Poseidon, false, 8, 8), 3, 1076, 1063,
			"3bd8cb4719e1ce8b020c078159a77bd5cf9d8eca04ed094eaca290c621f10a20"},
		"F12 PoR 8-0-0 private": {porFixture(gadget.Poseidon, true, 8, 8), 2, 1076, 1062,
			"a87d5c076c5882911c7073da19dba3a6bc1cfb7bd107afae8a18337734146519"},
		"F13 PoR 8-2-0": {porFixture(gadget.Poseidon, false, 8, 8, 2), 3, 1391, 1377,
			"a04df283d7f0ecff20e7c42f6bb497b2714c70c4124f5489e881c23e67814070"},
		"F14 PoR 8-8-0": {porFixture(gadget.Poseidon, false, 8, 8, 8), 3, 1613, 1593,
			"eca5c6440650cc590e477789dbbcc685627355c9c5dc6008dcb9fc6bfb8d34b8"},
		"F15 PoR 8-4-2": {porFixture(gadget.Poseidon, false, 8, 8, 4, 2), 3, 1781, 1764,
			"6badd752fa6a04dc492ae54080ea68de802e67510aaad087c7a83abb2158624a"},
		"F16 PoR 8-8-2": {porFixture(gadget.Poseidon, false, 8, 8, 8, 2), 3, 1928, 1907,
			"1aaf5b3ff8221455ad5ba57746f23db956a2de780213b68d65d8ea0165607e84"},
		"fine: to_bits_le": {func(s *r1cs.System) { s.NumBits(s.Alloc(fr.Element{})) }, 1, 256, 256,
			"fe8f60dff8688ec7c39a8ebb4750cc381c306c9f430d43e0fcf0ca5a23025477"},
		"fine: insert 2": {insertFixture(1), 1, 5, 3, "82c023e06614e98ea7c276fdb9fe7a756bd3f7bd064d54df4bb919aaa9e3d62e"},
		"fine: insert 8": {insertFixture(3), 1, 33, 25, "393a19b029a34f2ab275a6bdec18b8aa306a9ce353209262944e3be6ec1180a6"},
		"fine: tree D node": {func(s *r1cs.System) { gadget.SHA256Node(s, alloc(s, 2)) }, 1, 45333, 45379,
			"17fd4b5ddd5b8fe8759308f1b1b019e3a9e00d179d227b5e64580e48a233b91e"},
		"fine: compression of unconstrained bits": {func(s *r1cs.System) {
			gadget.Compress(s, gadget.Block(message(16, s.AllocPlainBits)), gadget.SHA256IV())
		}, 1, 26326, 25840, "5930e65fd627460654a14ac58ad450fb7c223c37fb4410f478e6adf06fcdb93d"},
		"fine: compression with unconstrained state": {func(s *r1cs.System) {
			block := gadget.Block(message(16, s.AllocPlainBits))
			gadget.Compress(s, block, gadget.State(words(8, s.AllocPlainBits)))
		}, 1, 26934, 26192, "ec72c42fbb76124292176e18c9c8bdc8dc0df5522173b3e23a6b64cf2adf9b12"},
		"fine: compression of a padding block": {func(s *r1cs.System) {
			gadget.Compress(s, paddingBlock(), gadget.State(words(8, s.AllocPlainBits)))
		}, 1, 19270, 19034, "fc1a65bb6331f9d083e40c5c727de48141bb29d21b3d6ae6f644d38d5bbc13da"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}
