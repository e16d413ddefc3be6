package c1

import (
	"fmt"
	"runtime"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/internal/workers"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// Claim is whose sector a C1 output is said to be.
type Claim struct {
	// ProverID is the payload of the miner's ID address, see sdr.ProverID.
	ProverID [32]byte
	// SectorNumber is the number of the sector.
	SectorNumber uint64
}

// Check verifies the whole vanilla proof on all cores (c2-formats.md 1.6, 2.2, 2.4; c2-circuit.md 5.2 to 5.5), so that
// a proof made from it will verify for the claimed prover and sector: counts and path shapes; commitments and seed that
// are not zero; canonical elements everywhere; the replica id; challenges from the seed and parents from the graph
// against nodes, column indices and path positions; paths of trees D, C and R-last and their roots; column hashes;
// comm_r; labels with the parents they hash; the encoding. It refuses with an *InputError, the first in order of
// partition and challenge within a stage. It keeps out unchanged.
//
// It costs one Poseidon hash per column and per distinct tree node: about 19,000 for 32 GiB.
func Check(out *Output, claim Claim) error {
	c := &checker{out: out}
	if err := c.checkTop(claim); err != nil {
		return err
	}
	if err := c.forEachChallenge((*challengeCheck).all); err != nil {
		return err
	}
	commC, commRLast := element(&c.first().CX.Inclusion.Root), element(&c.first().CommRLastProof.Root)
	if want := sdr.CommR(&commC, &commRLast); want != element(&out.CommR) {
		return topError("comm_r", "not the hash of comm_c and comm_r_last, the roots in the proofs")
	}
	if err := c.checkColumnHashes(); err != nil {
		return err
	}
	return c.checkTreePaths()
}

// checker holds what all challenges share.
type checker struct {
	out    *Output
	config sdr.Config
	graph  *sdr.Graph
	shape  shape
	// challenges has the recomputed challenges of every partition.
	challenges [][]uint64
}

func topError(field, format string, args ...any) *InputError {
	return &InputError{Partition: -1, Challenge: -1, Field: field, Offset: -1, Reason: fmt.Sprintf(format, args...)}
}

// checkTop checks everything outside the challenges' proofs, and the number of those.
func (c *checker) checkTop(claim Claim) error {
	out := c.out
	if !out.RegisteredProof.Valid() {
		return topError("registered_proof", "%s", out.RegisteredProof)
	}
	c.config = out.RegisteredProof.Config()
	c.shape = shapeOf(c.config.Size)
	if err := c.checkCounts(); err != nil {
		return err
	}
	for _, value := range []struct {
		name      string
		value     *[32]byte
		mayBeZero bool
		opaque    bool
	}{
		{"comm_r", &out.CommR, false, false}, {"comm_d", &out.CommD, false, false},
		{"replica_id", &out.ReplicaID, true, false}, {"seed", &out.Seed, false, true},
	} {
		if !value.mayBeZero && *value.value == [32]byte{} {
			return topError(value.name, "all zero")
		}
		if !value.opaque && !canonical(value.value) {
			return topError(value.name, "%s", notCanonical)
		}
	}
	porepID := c.config.PoRepID
	if out.ReplicaID != sdr.ReplicaID(&claim.ProverID, claim.SectorNumber, &out.Ticket, &out.CommD, &porepID) {
		return topError("replica_id", "not that of sector %d of prover %x with this ticket, comm_d and "+
			"registered_proof %s: wrong miner or sector number, or a damaged value",
			claim.SectorNumber, claim.ProverID, out.RegisteredProof)
	}
	c.graph = c.config.Graph()
	from := sdr.ChallengeSeed{ReplicaID: out.ReplicaID, CommR: out.CommR, Seed: out.Seed}
	for partition := range out.VanillaProofs {
		c.challenges = append(c.challenges, c.config.Challenges(partition, &from))
	}
	return nil
}

func (c *checker) checkCounts() error {
	partitions := c.out.VanillaProofs
	if want := c.config.PartitionCount(); len(partitions) != want {
		return topError("vanilla_proofs", "%d partitions, want %d for %s", len(partitions), want, c.out.RegisteredProof)
	}
	for k := range partitions {
		if len(partitions[k]) != c.shape.challenges {
			err := topError("", "%d challenges, want %d", len(partitions[k]), c.shape.challenges)
			err.Partition = k
			return err
		}
	}
	return nil
}

// first is the proof whose roots all others must have.
func (c *checker) first() *Proof { return &c.out.VanillaProofs[0][0] }

// count is the number of challenges of all partitions; challenge number n is at(n).
func (c *checker) count() int { return len(c.out.VanillaProofs) * c.shape.challenges }

func (c *checker) at(n int) (partition, challenge int) {
	return n / c.shape.challenges, n % c.shape.challenges
}

func (c *checker) proofAt(n int) *Proof {
	partition, challenge := c.at(n)
	return &c.out.VanillaProofs[partition][challenge]
}

// forEachChallenge runs a check on every challenge, on all cores, and gives the refusal of the first that fails.
func (c *checker) forEachChallenge(check func(*challengeCheck) *InputError) error {
	labelers := make([]*sdr.Labeler, runtime.GOMAXPROCS(0))
	return workers.Each(len(labelers), c.count(), func(worker, n int) error {
		if labelers[worker] == nil {
			labelers[worker] = sdr.NewLabeler(&c.out.ReplicaID)
		}
		partition, challenge := c.at(n)
		cc := &challengeCheck{
			checker: c, partition: partition, challenge: challenge, labeler: labelers[worker],
			node: c.challenges[partition][challenge], proof: c.proofAt(n),
		}
		if refusal := check(cc); refusal != nil {
			return refusal
		}
		return nil
	})
}

const notCanonical = "not a canonical field element (not below the modulus)"

// canonical says whether a little-endian value is below the modulus r.
func canonical(value *[32]byte) bool {
	// 0x73 is the top byte of the modulus.
	return value[31] < 0x73 || canonicalSlowly(value)
}

func canonicalSlowly(value *[32]byte) bool {
	_, err := fr.LittleEndian.Element(value)
	return err == nil
}

// element converts a value that is known to be canonical.
func element(value *[32]byte) fr.Element {
	e, err := fr.LittleEndian.Element(value)
	if err != nil {
		panic(fmt.Sprintf("c1: element %x after it was found canonical: %v", *value, err))
	}
	return e
}
