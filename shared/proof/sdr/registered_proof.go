package sdr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// RegisteredProof is the number of a registered seal proof, 0 to 19 (c2-formats.md 1.5), or Unregistered.
type RegisteredProof int8

const (
	// Unregistered stands for a sector that has no registered proof: an unpublished size or a foreign porep id.
	Unregistered RegisteredProof = -1
	// RegisteredProofCount is the number of registered proofs; valid numbers lie below.
	RegisteredProofCount = 20
)

// ErrRegisteredProof says that a name or number is no registered proof.
var ErrRegisteredProof = errors.New("unknown registered proof")

// ErrConfig says that API version and proof family are unknown or do not go together.
var ErrConfig = errors.New("impossible proof configuration")

// APIVersion is the version of the proofs interface; it decides the graph.
type APIVersion uint8

// The API versions 1.0.0, 1.1.0 and 1.2.0; the last two have the same graph.
const (
	APIVersion1_0 APIVersion = iota
	APIVersion1_1
	APIVersion1_2
)

// String is the version with dots, such as "1.1.0".
func (v APIVersion) String() string { return fmt.Sprintf("1.%d.0", uint8(v)) }

// Family says how the challenges of a proof are derived.
type Family uint8

// The proof families.
const (
	Interactive Family = iota
	Synthetic
	NonInteractive
)

// String is the family in lower case, such as "non-interactive".
func (f Family) String() string {
	switch f {
	case Interactive:
		return "interactive"
	case Synthetic:
		return "synthetic"
	case NonInteractive:
		return "non-interactive"
	}
	return fmt.Sprintf("family %d", uint8(f))
}

// registeredGroup is one row of the table in c2-formats.md 1.5: five registered proofs that differ by size only.
type registeredGroup struct {
	suffix  string
	version APIVersion
	family  Family
}

func registeredGroups() [4]registeredGroup {
	return [4]registeredGroup{
		{"V1", APIVersion1_0, Interactive},
		{"V1_1", APIVersion1_1, Interactive},
		{"V1_1_Feat_SyntheticPoRep", APIVersion1_2, Synthetic},
		{"V1_2_Feat_NonInteractivePoRep", APIVersion1_2, NonInteractive},
	}
}

// ParseRegisteredProof reads a name such as "StackedDrg32GiBV1_1", or the number that the chain has for it, "8".
func ParseRegisteredProof(name string) (RegisteredProof, error) {
	for number := range RegisteredProof(RegisteredProofCount) {
		if number.String() == name || strconv.Itoa(int(number)) == name {
			return number, nil
		}
	}
	return Unregistered, fmt.Errorf("parse registered proof %.60q: %w", name, ErrRegisteredProof)
}

// FindRegisteredProof gives the registered proof of a size with that API version and family.
func FindRegisteredProof(size SectorSize, version APIVersion, family Family) (RegisteredProof, error) {
	for number := range RegisteredProof(RegisteredProofCount) {
		if number.Size() == size && number.group().version == version && number.group().family == family {
			return number, nil
		}
	}
	return Unregistered, fmt.Errorf("find registered proof of %s, api %s, %s: %w", size, version, family,
		ErrRegisteredProof)
}

// Valid reports whether the number is a registered proof. The other methods, String excepted, panic if not.
func (r RegisteredProof) Valid() bool { return r >= 0 && r < RegisteredProofCount }

// String is the name as it stands in C1 outputs.
func (r RegisteredProof) String() string {
	if !r.Valid() {
		return fmt.Sprintf("unregistered proof %d", int8(r))
	}
	return "StackedDrg" + r.Size().String() + r.group().suffix
}

// Tag is the key of vanilla_proofs in C1 outputs: the name of the first registered proof of the same size.
func (r RegisteredProof) Tag() string { return (r % 5).String() }

// Size is the sector size.
func (r RegisteredProof) Size() SectorSize { return PublishedSizes()[r%5] }

func (r RegisteredProof) group() registeredGroup { return registeredGroups()[r/5] }

// PoRepID is the number and a zero nonce, both u64 little-endian, then zeros (c2-formats.md 2.2).
func (r RegisteredProof) PoRepID() [32]byte {
	if !r.Valid() {
		panic(fmt.Sprintf("sdr: porep id of %s", r))
	}
	var id [32]byte
	binary.LittleEndian.PutUint64(id[:], uint64(r))
	return id
}

// Config is the configuration of a sector with this registered proof.
func (r RegisteredProof) Config() Config {
	return Config{
		Size: r.Size(), Version: r.group().version, Family: r.group().family, PoRepID: r.PoRepID(),
	}
}

// Config is what a sector's graph and challenges depend on. Registered proofs have theirs by Config; tests and foreign
// sectors may combine any valid size with any porep id.
type Config struct {
	// Size is a valid sector size.
	Size SectorSize
	// Version decides the order of the DRG parents and the truncation of the expander parents.
	Version APIVersion
	// Family decides the challenges.
	Family Family
	// PoRepID seeds the graph and the replica id.
	PoRepID [32]byte
}

// Validate refuses unknown sizes, API versions and families, and families that need API 1.2.
func (c Config) Validate() error {
	switch {
	case !c.Size.Valid():
		return fmt.Errorf("check sector size %d: %w", uint64(c.Size), ErrSectorSize)
	case c.Version > APIVersion1_2:
		return fmt.Errorf("check api version %d: %w", c.Version, ErrConfig)
	case c.Family > NonInteractive, c.Family != Interactive && c.Version < APIVersion1_2:
		return fmt.Errorf("check %s proof with api %s: %w", c.Family, c.Version, ErrConfig)
	}
	return nil
}

// PartitionCount is the number of proofs a sector needs (c2-circuit.md 5.1).
func (c Config) PartitionCount() int {
	switch large, nonInteractive := c.Size.large(), c.Family == NonInteractive; {
	case large && nonInteractive:
		return 126
	case large:
		return 10
	case nonInteractive:
		return 13
	default:
		return 1
	}
}

// ChallengesMin is the least number of challenges a sector's proofs must answer together.
func (c Config) ChallengesMin() int {
	switch large, nonInteractive := c.Size.large(), c.Family == NonInteractive; {
	case large && nonInteractive:
		return 2253
	case large:
		return 176
	case nonInteractive:
		return 26
	default:
		return 2
	}
}

// ChallengesPerPartition is the number of challenges of each proof: 18 for 32 and 64 GiB, else 2.
func (c Config) ChallengesPerPartition() int {
	partitions := c.PartitionCount()
	return (c.ChallengesMin() + partitions - 1) / partitions
}

// InputCount is the number of public inputs of one proof, without the leading ONE: 39 or 327.
func (c Config) InputCount() int { return inputsShared + inputsPerChallenge*c.ChallengesPerPartition() }

// RegisteredProof is the registered proof with exactly this configuration, or Unregistered.
func (c Config) RegisteredProof() RegisteredProof {
	for number := range RegisteredProof(RegisteredProofCount) {
		if number.Config() == c {
			return number
		}
	}
	return Unregistered
}
