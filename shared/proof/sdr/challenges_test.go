package sdr

import (
	"math/big"
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func elementBytes(value uint64) [32]byte {
	e := fr.NewElement(value)
	return Bytes(&e)
}

func TestSyntheticChallengesEqualPublishedVector(t *testing.T) {
	t.Parallel()
	from := ChallengeSeed{ReplicaID: elementBytes(55), CommR: elementBytes(101), Seed: *filled(1)}
	s := newSyntheticSource(1024, &from)
	s.count = 21
	generated := make([]uint64, s.count)
	for i := range generated {
		generated[i] = s.challenge(uint64(i))
	}
	selected := make([]uint64, 10)
	for j := range selected {
		selected[j] = s.challenge(s.selected(uint32(j)))
	}
	want := []uint64{
		178, 297, 869, 211, 875, 477, 94, 781, 124, 332, 856, 801, 176, 692, 429, 691, 290, 204, 986, 210, 973,
	}
	if diff := cmp.Diff(want, generated); diff != "" {
		t.Errorf("synthetic challenges (-want +got):\n%s", diff)
	}
	want = []uint64{176, 781, 801, 986, 290, 211, 692, 856, 986, 332}
	if diff := cmp.Diff(want, selected); diff != "" {
		t.Errorf("selected challenges (-want +got):\n%s", diff)
	}
}

func TestToChallengeEqualsBigArithmetic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		digest := [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "digest"))
		nodes := rapid.Uint64Range(2, 1<<32).Draw(t, "nodes")
		bigEndian := digest
		slices.Reverse(bigEndian[:])
		want := new(big.Int).SetBytes(bigEndian[:])
		want.Mod(want, new(big.Int).SetUint64(nodes-1))
		if got := toChallenge(&digest, nodes); got != want.Uint64()+1 {
			t.Fatalf("challenge = %d, want %d", got, want.Uint64()+1)
		}
	})
}

func TestPartitionsContinueTheNumberingOfChallenges(t *testing.T) {
	t.Parallel()
	from := ChallengeSeed{ReplicaID: *filled(1), CommR: *filled(2), Seed: *filled(3)}
	for number := range RegisteredProof(RegisteredProofCount) {
		c := number.Config()
		count := c.ChallengesPerPartition()
		all := challenges(c.Family, c.Size.Nodes(), &from, 0, c.PartitionCount()*count)
		for partition := range c.PartitionCount() {
			want := all[partition*count : (partition+1)*count]
			if diff := cmp.Diff(want, c.Challenges(partition, &from)); diff != "" {
				t.Fatalf("%s partition %d (-want +got):\n%s", number, partition, diff)
			}
		}
	}
}

func TestChallengesDependOnWhatTheirFamilySays(t *testing.T) {
	t.Parallel()
	base := ChallengeSeed{ReplicaID: *filled(1), CommR: *filled(2), Seed: *filled(3)}
	otherSeed, otherCommR := base, base
	otherSeed.Seed[0]++
	otherCommR.CommR[0]++
	for family, want := range map[Family][2]bool{
		Interactive: {true, false}, Synthetic: {true, true}, NonInteractive: {false, true},
	} {
		draw := func(from *ChallengeSeed) []uint64 { return challenges(family, 1<<30, from, 0, 18) }
		got := [2]bool{
			!slices.Equal(draw(&base), draw(&otherSeed)), !slices.Equal(draw(&base), draw(&otherCommR)),
		}
		if got != want {
			t.Errorf("%s: depends on seed, comm_r = %v, want %v", family, got, want)
		}
	}
}
