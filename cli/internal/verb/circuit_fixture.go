package verb

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/gadget"
	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// gadgetFixtures are the test systems of the circuit specification 6.3 that hold one gadget.
func gadgetFixtures() map[string]func(*r1cs.System) {
	return map[string]func(*r1cs.System){
		"F1": func(s *r1cs.System) {
			gadget.Compress(s, gadget.Block(messageWords(s)), gadget.SHA256IV())
		},
		"F2":  func(s *r1cs.System) { gadget.SHA256(s, messageWords(s)) },
		"F3":  poseidonFixture(2),
		"F4":  poseidonFixture(4),
		"F5":  poseidonFixture(8),
		"F6":  poseidonFixture(11),
		"F8":  inclusionFixture(gadget.SHA256Node, true, 2, 2, 2, 2, 2, 2),
		"F9":  inclusionFixture(gadget.Poseidon, true, 2, 2, 2, 2, 2, 2),
		"F10": inclusionFixture(gadget.Poseidon, true, 4, 4, 4),
		"F11": inclusionFixture(gadget.Poseidon, true, 8, 8),
		"F12": inclusionFixture(gadget.Poseidon, false, 8, 8),
		"F13": inclusionFixture(gadget.Poseidon, true, 8, 8, 2),
		"F14": inclusionFixture(gadget.Poseidon, true, 8, 8, 8),
		"F15": inclusionFixture(gadget.Poseidon, true, 8, 8, 4, 2),
		"F16": inclusionFixture(gadget.Poseidon, true, 8, 8, 8, 2),
	}
}

// circuitFixtures are the test systems that are circuits of sector sizes.
func circuitFixtures() map[string]circuit.Circuit {
	return map[string]circuit.Circuit{
		"F21": &partial{porep.ForSize(sdr.Size32GiB), "F21", 2},
		"F22": &partial{porep.ForSize(sdr.Size64GiB), "F22", 2},
		"F23": porep.ForSize(sdr.Size2KiB),
		"F24": porep.ForSize(sdr.Size8MiB),
		"F25": porep.ForSize(sdr.Size512MiB),
		"F26": porep.ForSize(sdr.Size32GiB),
		"F27": porep.ForSize(sdr.Size64GiB),
	}
}

// messageWords allocates 512 message bits, most significant of each word first.
func messageWords(s *r1cs.System) []r1cs.Bits {
	words := make([]r1cs.Bits, 16)
	for i := range words {
		words[i] = s.AllocBits(32, 0).ReverseBits()
	}
	return words
}

// poseidonFixture allocates as many numbers as the arity and hashes them.
func poseidonFixture(arity int) func(*r1cs.System) {
	return func(s *r1cs.System) {
		numbers := make([]r1cs.Num, arity)
		for i := range numbers {
			numbers[i] = s.Alloc(fr.Element{})
		}
		gadget.Poseidon(s, numbers)
	}
}

// inclusionFixture is a Merkle path with levels of the given arities, its root a public input or not.
func inclusionFixture(hash gadget.NodeHash, public bool, arities ...int) func(*r1cs.System) {
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

// digestFixture hashes one of the test systems.
func (a *app) digestFixture(c *cobra.Command, name string) error {
	if known, ok := circuitFixtures()[name]; ok {
		return a.digestCircuit(c, known)
	}
	walk, ok := gadgetFixtures()[name]
	if !ok {
		return misuse("unknown test system %q: there are %s", name, strings.Join(fixtureNames(), ", "))
	}
	start := time.Now()
	counter := r1cs.NewSystem(r1cs.Start(), nil, nil)
	walk(counter)
	totals := counter.Position()
	digest := r1cs.NewDigest(totals)
	walk(r1cs.NewSystem(r1cs.Start(), digest, nil))
	return a.emit(digestOf(fmt.Sprintf("fixture %s", name), totals, digest, start), false)
}

// fixtureNames lists the test systems by number.
func fixtureNames() []string {
	gadgets, circuits := gadgetFixtures(), circuitFixtures()
	names := slices.AppendSeq(slices.Collect(maps.Keys(gadgets)), maps.Keys(circuits))
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	return names
}
