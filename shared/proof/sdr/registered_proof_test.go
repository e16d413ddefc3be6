package sdr

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestRegisteredProofTable(t *testing.T) {
	t.Parallel()
	type row struct {
		Name, Tag  string
		Version    APIVersion
		Family     Family
		Partitions int
		Challenges int
		Inputs     int
	}
	for number, want := range map[RegisteredProof]row{
		0:  {"StackedDrg2KiBV1", "StackedDrg2KiBV1", APIVersion1_0, Interactive, 1, 2, 39},
		6:  {"StackedDrg8MiBV1_1", "StackedDrg8MiBV1", APIVersion1_1, Interactive, 1, 2, 39},
		8:  {"StackedDrg32GiBV1_1", "StackedDrg32GiBV1", APIVersion1_1, Interactive, 10, 18, 327},
		12: {"StackedDrg512MiBV1_1_Feat_SyntheticPoRep", "StackedDrg512MiBV1", APIVersion1_2, Synthetic, 1, 2, 39},
		15: {
			"StackedDrg2KiBV1_2_Feat_NonInteractivePoRep", "StackedDrg2KiBV1", APIVersion1_2, NonInteractive, 13, 2, 39,
		},
		19: {
			"StackedDrg64GiBV1_2_Feat_NonInteractivePoRep", "StackedDrg64GiBV1", APIVersion1_2, NonInteractive,
			126, 18, 327,
		},
	} {
		c := number.Config()
		got := row{
			number.String(), number.Tag(), c.Version, c.Family, c.PartitionCount(), c.ChallengesPerPartition(),
			c.InputCount(),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("registered proof %d (-want +got):\n%s", number, diff)
		}
	}
}

func TestRegisteredProofNamesRoundTrip(t *testing.T) {
	t.Parallel()
	for number := range RegisteredProof(RegisteredProofCount) {
		parsed, err := ParseRegisteredProof(number.String())
		if err != nil || parsed != number {
			t.Errorf("parse %s = %d, %v", number, parsed, err)
		}
		c := number.Config()
		found, err := FindRegisteredProof(c.Size, c.Version, c.Family)
		if err != nil || found != number {
			t.Errorf("find %s = %d, %v", number, found, err)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("validate %s: %v", number, err)
		}
		if got := c.RegisteredProof(); got != number {
			t.Errorf("configuration of %s belongs to %s", number, got)
		}
		c.PoRepID[31]++
		if got := c.RegisteredProof(); got != Unregistered {
			t.Errorf("configuration with foreign porep id belongs to %s", got)
		}
		if c.PartitionCount()*c.ChallengesPerPartition() < c.ChallengesMin() {
			t.Errorf("%s: too few challenges", number)
		}
	}
	for _, name := range []string{
		"", "StackedDrg4KiBV1", "StackedDrg2KiBV2", "stackedDrg2KiBV1", "unregistered proof -1",
	} {
		if _, err := ParseRegisteredProof(name); !errors.Is(err, ErrRegisteredProof) {
			t.Errorf("parse %q: %v, want ErrRegisteredProof", name, err)
		}
	}
	if _, err := FindRegisteredProof(Size4KiB, APIVersion1_1, Interactive); !errors.Is(err, ErrRegisteredProof) {
		t.Errorf("find 4KiB: %v, want ErrRegisteredProof", err)
	}
}

func TestConfigValidation(t *testing.T) {
	t.Parallel()
	if err := (Config{Size: 3 << 10, Version: APIVersion1_1}).Validate(); !errors.Is(err, ErrSectorSize) {
		t.Errorf("size of 3 KiB: %v, want ErrSectorSize", err)
	}
	for name, c := range map[string]Config{
		"version":                  {Size: Size2KiB, Version: 3},
		"family":                   {Size: Size2KiB, Version: APIVersion1_2, Family: 3},
		"synthetic before 1.2":     {Size: Size2KiB, Version: APIVersion1_1, Family: Synthetic},
		"non-interactive with 1.0": {Size: Size2KiB, Version: APIVersion1_0, Family: NonInteractive},
	} {
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v, want ErrConfig", name, err)
		}
	}
}

func TestSectorSizes(t *testing.T) {
	t.Parallel()
	type row struct {
		Shape         string
		Layers, DPath int
		Levels        []int
	}
	for text, want := range map[string]row{
		"2KiB":   {"8-0-0", 2, 6, []int{8, 8}},
		"8MiB":   {"8-0-0", 2, 18, []int{8, 8, 8, 8, 8, 8}},
		"512MiB": {"8-0-0", 2, 24, []int{8, 8, 8, 8, 8, 8, 8, 8}},
		"32GiB":  {"8-8-0", 11, 30, []int{8, 8, 8, 8, 8, 8, 8, 8, 8, 8}},
		"64GiB":  {"8-8-2", 11, 31, []int{8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 2}},
		"4KiB":   {"8-2-0", 2, 7, []int{8, 8, 2}},
		"16KiB":  {"8-8-0", 2, 9, []int{8, 8, 8}},
		"32KiB":  {"8-8-2", 2, 10, []int{8, 8, 8, 2}},
		"16MiB":  {"8-2-0", 2, 19, []int{8, 8, 8, 8, 8, 8, 2}},
		"1GiB":   {"8-2-0", 2, 25, []int{8, 8, 8, 8, 8, 8, 8, 8, 2}},
	} {
		size, err := ParseSectorSize(text)
		if err != nil {
			t.Errorf("parse %s: %v", text, err)
			continue
		}
		got := row{size.Shape().String(), size.LayerCount(), size.TreeDLevels(), size.TreeLevels()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		leaves := uint64(1)
		for _, arity := range got.Levels {
			leaves *= uint64(arity)
		}
		if leaves != size.Nodes() {
			t.Errorf("%s: tree of %d leaves, %d nodes", text, leaves, size.Nodes())
		}
	}
	for _, text := range []string{"", "2kib", "3KiB", "2 KiB", "128GiB"} {
		if _, err := ParseSectorSize(text); !errors.Is(err, ErrSectorSize) {
			t.Errorf("parse %q: %v, want ErrSectorSize", text, err)
		}
	}
}

func TestParamsNamesArePublished(t *testing.T) {
	t.Parallel()
	const prefix = "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-"
	for size, want := range map[SectorSize]string{
		Size2KiB:   "8-0-0-sha256_hasher-032d3138d22506ec0082ed72b2dcba18df18477904e35bafee82b3793b06832f",
		Size8MiB:   "8-0-0-sha256_hasher-ecd683648512ab1765faa2a5f14bab48f676e633467f0aa8aad4b55dcb0652bb",
		Size512MiB: "8-0-0-sha256_hasher-6babf46ce344ae495d558e7770a585b2382d54f225af8ed0397b8be7c3fcd472",
		Size32GiB:  "8-8-0-sha256_hasher-82a357d2f2ca81dc61bb45f4a762807aedee1b0a53fd6c4e77b46a01bfef7820",
		Size64GiB:  "8-8-2-sha256_hasher-96f1b4a04c5c51e4759bbf224bbc2ef5a42c7100f16ec0637123f16a845ddfb2",
	} {
		if got := ParamsName(size); got != prefix+want {
			t.Errorf("%s: name = %s, want %s", size, got, prefix+want)
		}
	}
	want := "layered_drgporep::PublicParams{ graph: stacked_graph::StackedGraph{expansion_degree: 8 base_graph: " +
		"drgraph::BucketGraph{size: 1073741824; degree: 6; hasher: poseidon_hasher} }, challenges: LayerChallenges " +
		"{ layers: 11, max_count: 18 }, tree: merkletree-poseidon_hasher-8-8-0 }"
	if got := CircuitIdentifier(Size32GiB); got != want {
		t.Errorf("identifier = %s, want %s", got, want)
	}
}

func TestMinerSpellingsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		miner := rapid.Uint64Range(0, math.MaxInt64).Draw(t, "miner")
		text := rapid.SampledFrom([]string{"", "f0", "t0"}).Draw(t, "prefix") + strconv.FormatUint(miner, 10)
		if got, err := ParseMiner(text); err != nil || got != miner {
			t.Fatalf("parse %q = %d, %v", text, got, err)
		}
		id := ProverID(miner)
		if got, n := binary.Uvarint(id[:]); got != miner || n <= 0 {
			t.Fatalf("prover id %x of %d reads as %d", id, miner, got)
		}
	})
}

func TestMinerIDs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{
		"0": 0, "1000": 1000, "f01000": 1000, "t01006": 1006, "f00": 0, "9223372036854775807": math.MaxInt64,
	} {
		if got, err := ParseMiner(text); err != nil || got != want {
			t.Errorf("parse %q = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "f0", "f", "f1000", "f1abcd", "g01000", "01000", "f001000", "-1", "+1", "1e3", "0x10", " 1",
		"9223372036854775808", "18446744073709551616",
	} {
		if id, err := ParseMiner(text); !errors.Is(err, ErrMiner) {
			t.Errorf("parse %q = %d, %v; want ErrMiner", text, id, err)
		}
	}
	for miner, want := range map[uint64][32]byte{0: {}, 127: {0x7f}, 1000: {0xe8, 0x07}, 1006: {0xee, 0x07}} {
		if got := ProverID(miner); got != want {
			t.Errorf("prover id of %d = %x, want %x", miner, got, want)
		}
	}
}
