package c1

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// values32 lists every 32-byte value of an output with a name for it.
func values32(out *Output) (values []*[32]byte) {
	add := func(v ...*[32]byte) { values = append(values, v...) }
	list := func(v [][32]byte) {
		for i := range v {
			add(&v[i])
		}
	}
	merkle := func(m *MerkleProof) {
		add(&m.Root, &m.Leaf)
		for _, elements := range [][]PathElement{m.Base, m.Sub, m.Top} {
			for i := range elements {
				list(elements[i].Hashes)
			}
		}
	}
	add(&out.CommR, &out.CommD, &out.ReplicaID, &out.Seed, &out.Ticket)
	for k := range out.VanillaProofs {
		for i := range out.VanillaProofs[k] {
			p := &out.VanillaProofs[k][i]
			merkle(&p.CommDProof)
			merkle(&p.CommRLastProof)
			for _, column := range allColumns(p) {
				list(column.Column.Rows)
				merkle(&column.Inclusion)
			}
			for j := range p.LabelingProofs {
				list(p.LabelingProofs[j].Parents[:])
			}
			list(p.EncodingProof.Parents[:])
		}
	}
	return values
}

// integers lists every integer of an output as a function that changes it by one.
func integers(out *Output) (change []func()) {
	merkle := func(m *MerkleProof) {
		for _, elements := range [][]PathElement{m.Base, m.Sub, m.Top} {
			for i := range elements {
				change = append(change, func() { elements[i].Index ^= 1 })
			}
		}
	}
	for k := range out.VanillaProofs {
		for i := range out.VanillaProofs[k] {
			p := &out.VanillaProofs[k][i]
			merkle(&p.CommDProof)
			merkle(&p.CommRLastProof)
			for _, column := range allColumns(p) {
				change = append(change, func() { column.Column.Index ^= 1 })
				merkle(&column.Inclusion)
			}
			labels := []*LabelProof{&p.EncodingProof}
			for j := range p.LabelingProofs {
				labels = append(labels, &p.LabelingProofs[j])
			}
			for _, label := range labels {
				change = append(change, func() { label.Node ^= 1 }, func() { label.LayerIndex ^= 1 })
			}
		}
	}
	return change
}

func TestCheckRefusesEveryFlippedBit(t *testing.T) {
	t.Parallel()
	for _, s := range localSamples(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			out := mustDecode(t, s.text)
			random := rand.New(rand.NewPCG(1, 2))
			for n, value := range values32(out) {
				if n >= 5 && random.IntN(12) != 0 {
					continue
				}
				bit := random.IntN(256)
				value[bit/8] ^= 1 << (bit % 8)
				var refusal *InputError
				if err := Check(out, s.claim); !errors.As(err, &refusal) || refusal.Field == "" {
					t.Errorf("value %d, bit %d: got %v, want a refusal with a field", n, bit, err)
				}
				value[bit/8] ^= 1 << (bit % 8)
			}
			if err := Check(out, s.claim); err != nil {
				t.Errorf("after all changes were undone: %v", err)
			}
		})
	}
}

func TestCheckRefusesEveryChangedInteger(t *testing.T) {
	t.Parallel()
	s := small(t)
	out := mustDecode(t, s.text)
	for n, change := range integers(out) {
		change()
		var refusal *InputError
		if err := Check(out, s.claim); !errors.As(err, &refusal) || refusal.Partition != 0 || refusal.Challenge < 0 {
			t.Errorf("integer %d: got %v, want a refusal with partition and challenge", n, err)
		}
		change()
	}
	if err := Check(out, s.claim); err != nil {
		t.Errorf("after all changes were undone: %v", err)
	}
}

func TestInputHashDependsOnEveryValueAndOnNoForm(t *testing.T) {
	t.Parallel()
	s := small(t)
	out := mustDecode(t, s.text)
	want := InputHash(out, s.claim)
	if got := InputHash(mustDecode(t, reordered(t, s.text)), s.claim); got != want {
		t.Errorf("another order of keys: %x, want %x", got, want)
	}
	differs := func(what string, n int) {
		t.Helper()
		if InputHash(out, s.claim) == want {
			t.Errorf("%s %d changed: the hash did not", what, n)
		}
	}
	for n, value := range values32(out) {
		value[n%32] ^= 1
		differs("value", n)
		value[n%32] ^= 1
	}
	for n, change := range integers(out) {
		change()
		differs("integer", n)
		change()
	}
	for n, claim := range []Claim{{s.claim.ProverID, 1}, {[32]byte{1}, s.claim.SectorNumber}} {
		if InputHash(out, claim) == want {
			t.Errorf("claim %d: the hash did not change", n)
		}
	}
	if InputHash(out, s.claim) != want {
		t.Error("the hash is not the same after all changes were undone")
	}
}

// reordered turns every object around and adds white space.
func reordered(t testing.TB, text []byte) []byte {
	t.Helper()
	out, rest := reverseKeys(bytes.TrimSpace(text))
	if len(rest) != 0 {
		t.Fatalf("%d bytes left over", len(rest))
	}
	return out
}

// reverseKeys rewrites one value of JSON without white space or escapes, with the members of objects in reverse order
// and some white space, and gives what follows.
func reverseKeys(text []byte) (out, rest []byte) {
	switch text[0] {
	case '"':
		end := bytes.IndexByte(text[1:], '"') + 2
		return text[:end], text[end:]
	case '{', '[':
	default:
		end := bytes.IndexAny(text, ",]}")
		return text[:end], text[end:]
	}
	opening, closing := text[0], text[0]+2
	var members [][]byte
	rest = text[1:]
	for rest[0] != closing {
		rest = bytes.TrimPrefix(rest, []byte(","))
		var member, value []byte
		if opening == '{' {
			member, rest = reverseKeys(rest)
			member = append(bytes.Clone(member), " : \n"...)
			rest = rest[1:]
		}
		value, rest = reverseKeys(rest)
		members = append(members, append(bytes.Clone(member), value...))
	}
	if opening == '{' {
		for i, j := 0, len(members)-1; i < j; i, j = i+1, j-1 {
			members[i], members[j] = members[j], members[i]
		}
	}
	out = append([]byte{opening}, bytes.Join(members, []byte("\t,\r\n "))...)
	return append(out, closing), rest[1:]
}
