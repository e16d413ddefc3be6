package testsystem

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/gadget"
	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// small are F1 to F16: single gadgets.
func small() []*System {
	return []*System{
		{"F1", 1, 26326, 26352, "a91be46c89fe4cb18f85d99956bf9b1afe0a96d1b6c960a30d4e9dcafcf501ba", walked(func(s *r1cs.System) {
			gadget.Compress(s, gadget.Block(message(16, s.AllocBits)), gadget.SHA256IV())
		})},
		{"F2", 1, 45340, 45386, "39b920088193af138e8d3494179b1d9a20442bb23e28e65028b068c6a9e48771", walked(func(s *r1cs.System) {
			gadget.SHA256(s, message(16, s.AllocBits))
		})},
		{"F3", 1, 313, 311, "658f013f99360e164ad8e7f96290944601cc064f93c153d9ea7ac1275927175f", hashOf(2)},
		{"F4", 1, 381, 377, "2360602a7c4555d454b46891236273f4ae308090bc916fdcef1fb81d00ebbe70", hashOf(4)},
		{"F5", 1, 513, 505, "ab50aeda63344f7125999ef5c4af7777380b9015ec82ad48bac2213e9353b163", hashOf(8)},
		{"F6", 1, 609, 598, "e94a28106cbb9a718e525f0f2593ce3b138350047854ebcc3c83472ed482a6f6", hashOf(11)},
		{"F7", 1, 531505, 532025, "0759ddd2645a276700fad35fe3125ec00ac1c96ee74bdab68cc2edc81f8d301e", walked(constrainedLabel)},
		{"F8", 3, 272012, 272295, "06101b213e985a06aa97367fb756d504912d2edfa7169fe7390f3563e2b7bdbf",
			inclusion(gadget.SHA256Node, true, 2, 2, 2, 2, 2, 2)},
		{"F9", 3, 1892, 1887, "e4a6b97ab322b5265befdbededdd16353db058e22cd88a9a9960f0f32efb95e9",
			inclusion(gadget.Poseidon, true, 2, 2, 2, 2, 2, 2)},
		{"F10", 3, 1172, 1164, "ec45a446c4037ab2077accf70eff6ac48a5beba219648491be3e67a3f4b0c68c",
			inclusion(gadget.Poseidon, true, 4, 4, 4)},
		{"F11", 3, 1076, 1063, "3bd8cb4719e1ce8b020c078159a77bd5cf9d8eca04ed094eaca290c621f10a20",
			inclusion(gadget.Poseidon, true, 8, 8)},
		{"F12", 2, 1076, 1062, "a87d5c076c5882911c7073da19dba3a6bc1cfb7bd107afae8a18337734146519",
			inclusion(gadget.Poseidon, false, 8, 8)},
		{"F13", 3, 1391, 1377, "a04df283d7f0ecff20e7c42f6bb497b2714c70c4124f5489e881c23e67814070",
			inclusion(gadget.Poseidon, true, 8, 8, 2)},
		{"F14", 3, 1613, 1593, "eca5c6440650cc590e477789dbbcc685627355c9c5dc6008dcb9fc6bfb8d34b8",
			inclusion(gadget.Poseidon, true, 8, 8, 8)},
		{"F15", 3, 1781, 1764, "6badd752fa6a04dc492ae54080ea68de802e67510aaad087c7a83abb2158624a",
			inclusion(gadget.Poseidon, true, 8, 8, 4, 2)},
		{"F16", 3, 1928, 1907, "1aaf5b3ff8221455ad5ba57746f23db956a2de780213b68d65d8ea0165607e84",
			inclusion(gadget.Poseidon, true, 8, 8, 8, 2)},
	}
}

// fine are the finer systems, which localize a mismatch.
func fine() []*System {
	return []*System{
		{"to_bits_le", 1, 256, 256, "fe8f60dff8688ec7c39a8ebb4750cc381c306c9f430d43e0fcf0ca5a23025477",
			walked(func(s *r1cs.System) { s.NumBits(s.Alloc(fr.Element{})) })},
		{"insert 2", 1, 5, 3, "82c023e06614e98ea7c276fdb9fe7a756bd3f7bd064d54df4bb919aaa9e3d62e", insertion(1)},
		{"insert 8", 1, 33, 25, "393a19b029a34f2ab275a6bdec18b8aa306a9ce353209262944e3be6ec1180a6", insertion(3)},
		{"tree D node", 1, 45333, 45379, "17fd4b5ddd5b8fe8759308f1b1b019e3a9e00d179d227b5e64580e48a233b91e",
			walked(func(s *r1cs.System) { gadget.SHA256Node(s, numbers(s, 2)) })},
		{"compression, plain bits", 1, 26326, 25840, "5930e65fd627460654a14ac58ad450fb7c223c37fb4410f478e6adf06fcdb93d",
			walked(func(s *r1cs.System) {
				gadget.Compress(s, gadget.Block(message(16, s.AllocPlainBits)), gadget.SHA256IV())
			})},
		{"compression, plain state", 1, 26934, 26192, "ec72c42fbb76124292176e18c9c8bdc8dc0df5522173b3e23a6b64cf2adf9b12",
			walked(func(s *r1cs.System) {
				block := gadget.Block(message(16, s.AllocPlainBits))
				gadget.Compress(s, block, gadget.State(words(8, s.AllocPlainBits)))
			})},
		{"compression, padding", 1, 19270, 19034, "fc1a65bb6331f9d083e40c5c727de48141bb29d21b3d6ae6f644d38d5bbc13da",
			walked(func(s *r1cs.System) {
				gadget.Compress(s, paddingBlock(), gadget.State(words(8, s.AllocPlainBits)))
			})},
		{"label, layer 1", 1, 523598, 522269, "b706f88b05bc75ba5abf7ece0b857fdda9831cbf1b07d0ae5a78ba45da50cb8d", plainLabel(1, 6)},
		{"label, layer 2", 1, 525638, 522269, "ba24f7aeb8e51100e38825688da4af65e9abd99a51ff44af24a29f7df40b831a", plainLabel(2, 14)},
		{"label, layer 11", 1, 525638, 522269, "0b86c5961d6fdac5e53e06506cdf6b631c65502771da0113b7b0ac8021b44807", plainLabel(11, 14)},
	}
}

func numbers(s *r1cs.System, n int) []r1cs.Num {
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

// message are words whose bits are allocated most significant first, as in a bit stream.
func message(n int, alloc func(int, uint64) r1cs.Bits) []r1cs.Bits {
	w := words(n, alloc)
	for i := range w {
		w[i] = w[i].ReverseBits()
	}
	return w
}

func hashOf(arity int) walked { return func(s *r1cs.System) { gadget.Poseidon(s, numbers(s, arity)) } }

// inclusion is a Merkle path with levels of the given arities, its root a public input or not.
func inclusion(hash gadget.NodeHash, public bool, arities ...int) walked {
	return func(s *r1cs.System) {
		leaf := s.Alloc(fr.Element{})
		path := make([]gadget.PathElement, len(arities))
		for i, arity := range arities {
			path[i].Siblings = make([]fr.Element, arity-1)
		}
		var root r1cs.Num
		gadget.Inclusion(s, leaf, path, hash, func() r1cs.Num {
			root = s.Alloc(fr.Element{})
			return root
		})
		if public {
			s.Inputize(root)
		}
	}
}

func insertion(indexBits int) walked {
	return func(s *r1cs.System) {
		x := s.Alloc(fr.Element{})
		index := s.AllocBits(indexBits, 0)
		gadget.Insert(s, x, index, numbers(s, 1<<indexBits-1))
	}
}

// paddingBlock is the second block of a 64-byte message.
func paddingBlock() gadget.Block {
	var block gadget.Block
	for i := range block {
		block[i] = r1cs.ConstBits(32, 0)
	}
	block[0], block[15] = r1cs.ConstBits(32, 1<<31), r1cs.ConstBits(32, 512)
	return block
}

// constrainedLabel has 37 parents and the replica id of 256 constrained bits each, and a constant node.
func constrainedLabel(s *r1cs.System) {
	parents := make([][]r1cs.Bits, 37)
	for i := range parents {
		parents[i] = message(8, s.AllocBits)
	}
	porep.Label(s, message(8, s.AllocBits), parents, 3, r1cs.ConstBits(64, 22))
}

// plainLabel has 255 plain bits for each number, least significant first.
func plainLabel(layer uint32, parentCount int) walked {
	return func(s *r1cs.System) {
		number := func() []r1cs.Bits {
			var limbs r1cs.Limbs
			for i := range 7 {
				limbs[i] = s.AllocPlainBits(32, 0)
			}
			limbs[7] = s.AllocPlainBits(31, 0).Concat(r1cs.ConstBits(1, 0))
			return gadget.MessageWords(limbs)
		}
		replicaID := number()
		parents := make([][]r1cs.Bits, parentCount)
		for i := range parents {
			parents[i] = number()
		}
		porep.Label(s, replicaID, parents, layer, s.AllocPlainBits(64, 0))
	}
}
