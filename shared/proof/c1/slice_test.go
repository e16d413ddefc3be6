package c1

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/blake2b"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// sliceOf is the slice that DecodeSlice should give, taken from the output the long way.
func sliceOf(out *Output, partition int) *Slice {
	first := &out.VanillaProofs[0][0]
	want := &Slice{
		Size: out.RegisteredProof.Size(), Partition: partition,
		ReplicaID: element(&out.ReplicaID), CommD: element(&out.CommD), CommR: element(&out.CommR),
		CommRLast: element(&first.CommRLastProof.Root), CommC: element(&first.CX.Inclusion.Root),
	}
	for _, p := range out.VanillaProofs[partition] {
		c := SliceChallenge{
			Challenge: p.EncodingProof.Node, DataLeaf: element(&p.CommDProof.Leaf), DataPath: stepsOf(&p.CommDProof),
			RLastPath: stepsOf(&p.CommRLastProof), CPath: stepsOf(&p.CX.Inclusion),
		}
		for i, column := range p.ParentColumns() {
			c.Parents[i] = SliceColumn{
				Node: uint64(column.Column.Index), Rows: elementsOf(column.Column.Rows),
				Path: stepsOf(&column.Inclusion),
			}
		}
		want.Challenges = append(want.Challenges, c)
	}
	return want
}

func stepsOf(m *MerkleProof) []sdr.Step {
	var steps []sdr.Step
	for _, e := range m.Elements() {
		steps = append(steps, sdr.Step{Siblings: elementsOf(e.Hashes), Index: int(e.Index)})
	}
	return steps
}

func elementsOf(values [][32]byte) []fr.Element {
	var elements []fr.Element
	for i := range values {
		elements = append(elements, element(&values[i]))
	}
	return elements
}

func mustEncodeSlice(t testing.TB, out *Output, partition int) []byte {
	t.Helper()
	data, err := EncodeSlice(out, partition)
	if err != nil {
		t.Fatalf("encode slice: %v", err)
	}
	return data
}

func TestSliceHoldsWhatTheCircuitNeeds(t *testing.T) {
	t.Parallel()
	for _, s := range append(localSamples(t), foreignSamples(t)...) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			out := mustDecode(t, s.text)
			for partition := range out.VanillaProofs {
				got, err := DecodeSlice(mustEncodeSlice(t, out, partition))
				if err != nil {
					t.Fatalf("decode slice of partition %d: %v", partition, err)
				}
				if diff := cmp.Diff(sliceOf(out, partition), got); diff != "" {
					t.Errorf("partition %d (-want +got):\n%s", partition, diff)
				}
			}
		})
	}
}

func TestSliceLengthFollowsFromTheSize(t *testing.T) {
	t.Parallel()
	// 60 header + 5·32 + 32 digest + challenges·(8 + 14·4 + 32·(1 + D + 14·(layers + siblings) + 2·siblings)).
	want := map[sdr.SectorSize]int{
		sdr.Size2KiB: 16_956, sdr.Size8MiB: 46_396, sdr.Size512MiB: 61_116, sdr.Size32GiB: 753_084,
		sdr.Size64GiB: 762_876,
	}
	got := map[sdr.SectorSize]int{}
	for size := range want {
		got[size] = layoutOf(size).bytes()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := len(mustEncodeSlice(t, mustDecode(t, small(t).text), 0)); got != want[sdr.Size2KiB] {
		t.Errorf("encoded slice has %d bytes, want %d", got, want[sdr.Size2KiB])
	}
}

// resealed is data with its digest made right again.
func resealed(data []byte) []byte {
	covered := data[:len(data)-sliceDigestBytes]
	digest := blake2b.Sum256(covered)
	return append(covered[:len(covered):len(covered)], digest[:]...)
}

func TestDecodeSliceRefuses(t *testing.T) {
	t.Parallel()
	good := mustEncodeSlice(t, mustDecode(t, small(t).text), 0)
	put := func(at int, value uint32) func([]byte) []byte {
		return func(data []byte) []byte {
			binary.LittleEndian.PutUint32(data[at:], value)
			return resealed(data)
		}
	}
	const partitionAt = len(sliceMagic) + 4 + circuitIDBytes
	const firstChallengeAt = sliceHeaderBytes + 32*sliceSharedValues
	firstParentAt := firstChallengeAt + 8 + 32*(1+6)
	for name, change := range map[string]func([]byte) []byte{
		"nothing":         func([]byte) []byte { return nil },
		"one byte less":   func(data []byte) []byte { return resealed(data[:len(data)-1]) },
		"one byte more":   func(data []byte) []byte { return resealed(append(data, 0)) },
		"header only":     func(data []byte) []byte { return data[:sliceHeaderBytes] },
		"another magic":   put(0, 1),
		"another version": put(len(sliceMagic), 2),
		"unknown circuit": put(len(sliceMagic)+4, 0x706f7271),
		"another circuit": func(data []byte) []byte {
			copy(data[len(sliceMagic)+4:], "porep-8MiB")
			return resealed(data)
		},
		"rubbish behind circuit":    put(len(sliceMagic)+4+circuitIDBytes-4, 1),
		"partition beyond the last": put(partitionAt, 13),
		"other challenge count":     put(partitionAt+4, 3),
		"other layer count":         put(partitionAt+8, 11),
		"other tree depth":          put(partitionAt+12, 7),
		"replica id not canonical":  put(sliceHeaderBytes+28, 0xffffffff),
		"challenge zero":            put(firstChallengeAt, 0),
		"challenge beyond the end":  put(firstChallengeAt, 64),
		"challenge of 2^32 and one": put(firstChallengeAt+4, 1),
		"parent beyond the end":     put(firstParentAt, 64),
		"row not canonical":         put(firstParentAt+4+28, 0x73eda754),
	} {
		if got, err := DecodeSlice(change(bytes.Clone(good))); !errors.Is(err, ErrSlice) || got != nil {
			t.Errorf("%s: got %v, %v, want ErrSlice", name, got, err)
		}
	}
	if _, err := DecodeSlice(resealed(good)); err != nil {
		t.Errorf("resealed without change: %v", err)
	}
}

func TestDecodeSliceRefusesEveryFlippedBit(t *testing.T) {
	t.Parallel()
	good := mustEncodeSlice(t, mustDecode(t, small(t).text), 0)
	for at := 0; at < len(good); at += 13 {
		changed := bytes.Clone(good)
		changed[at] ^= 1 << (at % 8)
		if _, err := DecodeSlice(changed); !errors.Is(err, ErrSlice) {
			t.Fatalf("bit %d of byte %d flipped: got %v, want ErrSlice", at%8, at, err)
		}
	}
}

func TestEncodeSliceRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Output){
		"no registered proof":     func(o *Output) { o.RegisteredProof = sdr.Unregistered },
		"no partitions":           func(o *Output) { o.VanillaProofs = nil },
		"too few challenges":      func(o *Output) { o.VanillaProofs[0] = o.VanillaProofs[0][:1] },
		"path too short":          func(o *Output) { p := &o.VanillaProofs[0][1].CX.Inclusion; p.Base = p.Base[:1] },
		"index out of range":      func(o *Output) { o.VanillaProofs[0][1].CommRLastProof.Base[0].Index = 8 },
		"row not canonical":       func(o *Output) { o.VanillaProofs[0][1].ExpParents[7].Column.Rows[1][31] = 0xff },
		"replica id too large":    func(o *Output) { o.ReplicaID[31] = 0xff },
		"challenge zero":          func(o *Output) { o.VanillaProofs[0][0].LabelingProofs[0].Node = 0 },
		"challenge too large":     func(o *Output) { o.VanillaProofs[0][0].LabelingProofs[0].Node = 64 },
		"data path elsewhere":     func(o *Output) { o.VanillaProofs[0][0].CommDProof.Base[3].Index ^= 1 },
		"replica path elsewhere":  func(o *Output) { o.VanillaProofs[0][0].CommRLastProof.Base[1].Index ^= 1 },
		"column path elsewhere":   func(o *Output) { o.VanillaProofs[0][0].DRGParents[5].Inclusion.Base[1].Index ^= 1 },
		"challenge's column path": func(o *Output) { o.VanillaProofs[0][0].CX.Inclusion.Base[1].Index ^= 1 },
	} {
		out := mustDecode(t, small(t).text)
		change(out)
		var refusal *InputError
		if data, err := EncodeSlice(out, 0); !errors.As(err, &refusal) || data != nil {
			t.Errorf("%s: got %d bytes, %v, want an InputError", name, len(data), err)
		}
	}
	out := mustDecode(t, small(t).text)
	for _, partition := range []int{-1, 1} {
		if _, err := EncodeSlice(out, partition); !errors.Is(err, ErrPartition) {
			t.Errorf("partition %d: got %v, want ErrPartition", partition, err)
		}
	}
}

func FuzzDecodeSlice(f *testing.F) {
	good := mustEncodeSlice(f, mustDecode(f, small(f).text), 0)
	f.Add(good)
	f.Add(good[:sliceHeaderBytes])
	f.Fuzz(func(t *testing.T, data []byte) {
		// The digest would hide everything behind it.
		if len(data) > sliceDigestBytes {
			data = resealed(data)
		}
		s, err := DecodeSlice(data)
		if (s == nil) == (err == nil) {
			t.Fatalf("slice %v with error %v", s, err)
		}
	})
}

// The encodings that others depend on are fixed: a change needs a new version.
func TestEncodingsAreFixed(t *testing.T) {
	t.Parallel()
	s := small(t)
	out := mustDecode(t, s.text)
	slice := mustEncodeSlice(t, out, 0)
	hash := InputHash(out, s.claim)
	got := map[string]string{
		"slice": hex.EncodeToString(slice[len(slice)-sliceDigestBytes:]), "input": hex.EncodeToString(hash[:]),
	}
	// Computed from the JSON by a separate program.
	want := map[string]string{
		"slice": "03f6fc1349f2a5fc729b51b628813f9cacc17cf874ff918dcc8858880ebc013a",
		"input": "d907727c83692bbf28b24c208c55df1b6e898994e40ee2f049ac90c0f3302ed9",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
