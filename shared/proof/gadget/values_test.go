package gadget_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/proof/gadget"
	"github.com/proofrack/proofrack/shared/proof/poseidon"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/r1cs/r1cstest"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// messageWord is one word of a message whose bits are constants where fixed has ones.
type messageWord struct{ value, fixed, negated uint32 }

// allocate makes the word of constants, variables and negated variables, least significant bit first.
func (w messageWord) allocate(s *r1cs.System) r1cs.Bits {
	word := r1cs.ConstBits(0, 0)
	for i := range 32 {
		bit := uint64(w.value >> i & 1)
		switch {
		case w.fixed>>i&1 == 1:
			word = word.Concat(r1cs.ConstBits(1, bit))
		case w.negated>>i&1 == 1:
			word = word.Concat(s.AllocBits(1, 1-bit).Complement())
		default:
			word = word.Concat(s.AllocBits(1, bit))
		}
	}
	return word
}

func digestOf(message []messageWord) [32]byte {
	var text []byte
	for _, w := range message {
		text = binary.BigEndian.AppendUint32(text, w.value)
	}
	return sha256.Sum256(text)
}

// hash walks SHA-256 over a message and compares its value.
func hash(t r1cstest.TB, s *r1cs.System, message []messageWord) {
	var words []r1cs.Bits
	for _, w := range message {
		words = append(words, w.allocate(s))
	}
	var got [32]byte
	for i, word := range gadget.SHA256(s, words) {
		binary.BigEndian.PutUint32(got[4*i:], uint32(word.Val))
	}
	if want := digestOf(message); got != want {
		t.Fatalf("digest of %d words: got %x, want %x", len(message), got, want)
	}
}

func drawMessage(t *rapid.T) []messageWord {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) messageWord {
		return messageWord{
			value:   rapid.Uint32().Draw(t, "value"),
			fixed:   rapid.OneOf(rapid.Just(uint32(0)), rapid.Just(^uint32(0)), rapid.Uint32()).Draw(t, "fixed"),
			negated: rapid.OneOf(rapid.Just(uint32(0)), rapid.Uint32()).Draw(t, "negated"),
		}
	}), 0, 34).Draw(t, "message")
}

func TestSHA256ValueIsTheStandardDigest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		message := drawMessage(t)
		hash(t, r1cs.NewSystem(r1cs.Start(), nil, nil), message)
	})
}

func TestSHA256IsSatisfiedWhateverBitsAreConstant(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for name, fixed := range map[string]func() uint32{
		"variables":     func() uint32 { return 0 },
		"mixed":         random.Uint32,
		"mostly fixed":  func() uint32 { return random.Uint32() | random.Uint32() | random.Uint32() },
		"all constants": func() uint32 { return ^uint32(0) },
	} {
		var message []messageWord
		for range 9 {
			message = append(message, messageWord{value: random.Uint32(), fixed: fixed(), negated: random.Uint32()})
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace := r1cstest.Check(t, func(s *r1cs.System) { hash(t, s, message) })
			if name == "all constants" && len(trace.Rows)+len(trace.Aux) > 0 {
				t.Errorf("a constant message takes %d rows and %d variables", len(trace.Rows), len(trace.Aux))
			}
		})
	}
}

// TestSHA256OfALongMessage hashes more blocks than a label of the circuit has.
func TestSHA256OfALongMessage(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	message := make([]messageWord, 40*8)
	for i := range message {
		message[i].value = random.Uint32()
	}
	hash(t, r1cs.NewSystem(r1cs.Start(), nil, nil), message)
}

func elements(random *rand.Rand, n int) []fr.Element {
	out := make([]fr.Element, n)
	for i := range out {
		var text [32]byte
		for k := 0; k < len(text); k += 8 {
			binary.LittleEndian.PutUint64(text[k:], random.Uint64())
		}
		out[i].SetBytes(text[:])
	}
	return out
}

// edgeElements are 0, 1, r−1 and 2^254, by turns.
func edgeElements(n int) []fr.Element {
	var edges [4]fr.Element
	edges[1].SetOne()
	edges[2].Sub(&edges[0], &edges[1])
	edges[3].SetOne()
	for range 254 {
		edges[3].Double(&edges[3])
	}
	out := make([]fr.Element, n)
	for i := range out {
		out[i] = edges[i%len(edges)]
	}
	return out
}

func allocAll(s *r1cs.System, values []fr.Element) []r1cs.Num {
	nums := make([]r1cs.Num, len(values))
	for i, v := range values {
		nums[i] = s.Alloc(v)
	}
	return nums
}

func TestPoseidonValueIsThePlainHash(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for _, arity := range []int{2, 4, 8, 11} {
		inputs := [][]fr.Element{make([]fr.Element, arity), edgeElements(arity), elements(random, arity)}
		t.Run(fmt.Sprintf("arity=%d", arity), func(t *testing.T) {
			t.Parallel()
			for _, in := range inputs {
				want := poseidon.Hash(in)
				trace := r1cstest.Check(t, func(s *r1cs.System) {
					if got := gadget.Poseidon(s, allocAll(s, in)); got.Val != want {
						t.Fatalf("hash of %v: got %s, want %s", in, got.Val.String(), want.String())
					}
				})
				if got := trace.Aux[len(trace.Aux)-1]; got != want {
					t.Fatalf("last variable is %s, want %s", got.String(), want.String())
				}
			}
		})
	}
}

func TestInsertPlacesAmongSiblings(t *testing.T) {
	t.Parallel()
	for _, size := range []int{2, 4, 8} {
		for index := range size {
			siblings := make([]fr.Element, size-1)
			for i := range siblings {
				siblings[i] = r1cs.Element(uint64(10 + i))
			}
			x := r1cs.Element(7)
			want := append(append(append([]fr.Element(nil), siblings[:index]...), x), siblings[index:]...)
			r1cstest.Check(t, func(s *r1cs.System) {
				own := s.AllocBits(bits.Len(uint(size))-1, uint64(index))
				var got []fr.Element
				for _, n := range gadget.Insert(s, s.Alloc(x), own, allocAll(s, siblings)) {
					got = append(got, n.Val)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%d of %d: want (-), got (+):\n%s", index, size, diff)
				}
			})
		}
	}
}

func TestInclusionEndsInTheRootAndExposesTheIndex(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	for name, arities := range map[string][]int{
		"2-0-0": {2, 2, 2}, "4-0-0": {4, 4}, "8-0-0": {8, 8}, "8-2-0": {8, 8, 2}, "8-8-0": {8, 8, 8}, "8-8-2": {8, 8, 8, 2},
		"no level": {},
	} {
		leaf := elements(random, 1)[0]
		var steps []sdr.Step
		var path []gadget.PathElement
		for _, arity := range arities {
			siblings, index := elements(random, arity-1), random.IntN(arity)
			steps = append(steps, sdr.Step{Siblings: siblings, Index: index})
			path = append(path, gadget.PathElement{Siblings: siblings, Index: index})
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := sdr.Root(&leaf, steps)
			walk := func(root fr.Element) func(s *r1cs.System) {
				return func(s *r1cs.System) {
					gadget.Inclusion(s, s.Alloc(leaf), path, gadget.Poseidon, func() r1cs.Num { return s.Alloc(root) })
				}
			}
			trace := r1cstest.Check(t, walk(root))
			if want := []fr.Element{fr.One(), r1cs.Element(sdr.Position(steps))}; !cmp.Equal(want, trace.Inputs) {
				t.Errorf("inputs: got %v, want %v", trace.Inputs, want)
			}
			one := fr.One()
			var other fr.Element
			other.Add(&root, &one)
			bad := r1cstest.Walk(walk(other))
			if bad.Failure() == "" {
				t.Error("another root satisfies the circuit")
			}
		})
	}
}

// nodeBytes are the little-endian bytes of a node.
func nodeBytes(e *fr.Element) [32]byte { return sdr.Bytes(e) }

func TestTreeDNodeIsTheTruncatedDigest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 10))
	for name, children := range map[string][]fr.Element{
		"zeros": make([]fr.Element, 2), "edges": edgeElements(3)[1:], "random": elements(random, 2),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left, right := nodeBytes(&children[0]), nodeBytes(&children[1])
			want := sdr.HashNodeD(&left, &right)
			r1cstest.Check(t, func(s *r1cs.System) {
				node := gadget.SHA256Node(s, allocAll(s, children))
				if got := nodeBytes(&node.Val); got != want {
					t.Fatalf("got %x, want %x", got, want)
				}
			})
		})
	}
}

func TestInclusionInTreeD(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 12))
	values := elements(random, 3)
	leaf := nodeBytes(&values[0])
	steps := []sdr.StepD{{Sibling: nodeBytes(&values[1]), Right: true}, {Sibling: nodeBytes(&values[2])}}
	want := sdr.RootD(leaf, steps)
	r1cstest.Check(t, func(s *r1cs.System) {
		path := []gadget.PathElement{
			{Siblings: values[1:2], Index: 1}, {Siblings: values[2:3], Index: 0},
		}
		var root fr.Element
		if err := root.SetBytesCanonical(reversed(want)); err != nil {
			t.Fatal(err)
		}
		gadget.Inclusion(s, s.Alloc(values[0]), path, gadget.SHA256Node, func() r1cs.Num { return s.Alloc(root) })
	})
}

func reversed(b [32]byte) []byte {
	out := make([]byte, len(b))
	for i, v := range b {
		out[len(b)-1-i] = v
	}
	return out
}

func TestPackingTakesTheFirst254Bits(t *testing.T) {
	t.Parallel()
	var limbs r1cs.Limbs
	for i := range limbs {
		limbs[i] = r1cs.ConstBits(32, 1<<32-1)
	}
	var want fr.Element // 2^254 − 1
	want.Set(&edgeElements(4)[3])
	one := fr.One()
	want.Sub(&want, &one)
	trace := r1cstest.Check(t, func(s *r1cs.System) {
		if got := gadget.PackLimbs(s, limbs); got.Val != want {
			t.Errorf("got %s, want %s", got.Val.String(), want.String())
		}
		gadget.PackIntoInput(s, gadget.Uint64(s, 0xfedcba9876543210))
	})
	if want := []fr.Element{fr.One(), r1cs.Element(0xfedcba9876543210)}; !cmp.Equal(want, trace.Inputs) {
		t.Errorf("inputs: got %v, want %v", trace.Inputs, want)
	}
}

// alloc allocates n plain numbers.
func alloc(s *r1cs.System, n int) []r1cs.Num {
	nums := make([]r1cs.Num, n)
	for i := range nums {
		nums[i] = s.Alloc(fr.Element{})
	}
	return nums
}

func TestMisusePanics(t *testing.T) {
	t.Parallel()
	s := r1cs.NewSystem(r1cs.Start(), nil, nil)
	leaf := s.Alloc(fr.Element{})
	for name, misuse := range map[string]func(){
		"two index bits for two siblings": func() { gadget.Insert(s, leaf, s.AllocBits(2, 0), alloc(s, 2)) },
		"insertion among 16":              func() { gadget.Insert(s, leaf, s.AllocBits(4, 0), alloc(s, 15)) },
		"child outside its node": func() {
			path := []gadget.PathElement{{Siblings: make([]fr.Element, 7), Index: 8}}
			gadget.Inclusion(s, leaf, path, gadget.Poseidon, func() r1cs.Num { return leaf })
		},
		"poseidon of arity 3": func() { gadget.Poseidon(s, alloc(s, 3)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			misuse()
		}()
	}
}
