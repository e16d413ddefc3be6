package sdr

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/chacha20"
)

// syntheticChallengesMax bounds the number of synthetic challenges that are selected from.
const syntheticChallengesMax = 1 << 18

// Domain separators of c2-circuit.md 5.3.
const (
	nonInteractiveDomain = "filecoin.io|PoRep|1|NonInteractive|1"
	generationDomain     = "filecoin.io|PoRep|1|Synthetic|1|Generation"
	selectionDomain      = "filecoin.io|PoRep|1|Synthetic|1|Selection"
	syntheticNonce       = "synth-porep\x00"
)

// ChallengeSeed is what challenges are derived from. Interactive challenges ignore CommR, non-interactive ones Seed.
type ChallengeSeed struct {
	ReplicaID, CommR, Seed [32]byte
}

// Challenges gives the challenges of one partition in order (c2-circuit.md 5.3); each lies in 1 … nodes−1 and they may
// repeat. It panics when the partition is not below the configuration's PartitionCount.
func (c Config) Challenges(partition int, from *ChallengeSeed) []uint64 {
	if partition < 0 || partition >= c.PartitionCount() {
		panic(fmt.Sprintf("sdr: partition %d of %d", partition, c.PartitionCount()))
	}
	count := c.ChallengesPerPartition()
	return challenges(c.Family, c.Size.Nodes(), from, uint32(partition*count), count)
}

// challenges gives count challenges, the first of them the one with the given number within the sector.
func challenges(family Family, nodes uint64, from *ChallengeSeed, first uint32, count int) []uint64 {
	out := make([]uint64, count)
	if family == Synthetic {
		s := newSyntheticSource(nodes, from)
		for i := range out {
			out[i] = s.challenge(s.selected(first + uint32(i)))
		}
		return out
	}
	var message []byte
	if family == NonInteractive {
		message = append(message, nonInteractiveDomain...)
		message = append(message, from.ReplicaID[:]...)
		message = append(message, from.CommR[:]...)
	} else {
		message = append(message, from.ReplicaID[:]...)
		message = append(message, from.Seed[:]...)
	}
	for i := range out {
		digest := sha256.Sum256(binary.LittleEndian.AppendUint32(message, first+uint32(i)))
		out[i] = toChallenge(&digest, nodes)
	}
	return out
}

// toChallenge maps 32 bytes to (LE256 mod (nodes − 1)) + 1.
func toChallenge(digest *[32]byte, nodes uint64) uint64 {
	modulus := nodes - 1
	var rest uint64
	for i := 24; i >= 0; i -= 8 {
		_, rest = bits.Div64(rest, binary.LittleEndian.Uint64(digest[i:]), modulus)
	}
	return rest + 1
}

// syntheticSource holds the two keys of synthetic challenges.
type syntheticSource struct {
	nodes, count          uint64
	generation, selection [32]byte
}

func newSyntheticSource(nodes uint64, from *ChallengeSeed) *syntheticSource {
	return &syntheticSource{
		nodes: nodes, count: min(nodes, syntheticChallengesMax),
		generation: keyedHash(generationDomain, &from.ReplicaID, &from.CommR),
		selection:  keyedHash(selectionDomain, &from.ReplicaID, &from.Seed),
	}
}

// challenge is the synthetic challenge with that index.
func (s *syntheticSource) challenge(index uint64) uint64 {
	var value [32]byte
	keyStream(value[:], &s.generation, 32*index)
	return toChallenge(&value, s.nodes)
}

// selected is the index of the synthetic challenge that challenge number j of the sector selects.
func (s *syntheticSource) selected(j uint32) uint64 {
	var value [4]byte
	keyStream(value[:], &s.selection, 4*uint64(j))
	return uint64(binary.LittleEndian.Uint32(value[:])) % s.count
}

// keyedHash is BLAKE2b with 32-byte output under a text as key.
func keyedHash(key string, first, second *[32]byte) (digest [32]byte) {
	h, err := blake2b.New256([]byte(key))
	if err != nil {
		panic(fmt.Sprintf("sdr: blake2b key of %d bytes: %v", len(key), err))
	}
	h.Write(first[:])
	h.Write(second[:])
	h.Sum(digest[:0])
	return digest
}

// keyStream fills out with the ChaCha20 key stream from that byte on; out may not cross a 64-byte block.
func keyStream(out []byte, key *[32]byte, at uint64) {
	const blockBytes = 64
	cipher, err := chacha20.NewUnauthenticatedCipher(key[:], []byte(syntheticNonce))
	if err != nil {
		panic(fmt.Sprintf("sdr: chacha20: %v", err))
	}
	cipher.SetCounter(uint32(at / blockBytes))
	var block [blockBytes]byte
	cipher.XORKeyStream(block[:], block[:])
	copy(out, block[at%blockBytes:])
}
