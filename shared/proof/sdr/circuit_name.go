package sdr

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// ParamsVersion is the version in the names of published parameter files.
const ParamsVersion = 28

// GraphIdentifier is the text that names a graph in circuit identifiers (c2-circuit.md 7.1).
func GraphIdentifier(nodes uint64) string {
	return fmt.Sprintf("stacked_graph::StackedGraph{expansion_degree: %d base_graph: "+
		"drgraph::BucketGraph{size: %d; degree: %d; hasher: poseidon_hasher} }", ExpDegree, nodes, DRGDegree)
}

// CircuitIdentifier is the text whose hash names the parameter files of a sector size (c2-circuit.md 7.1). It depends
// on the size alone: all proof families share one circuit.
func CircuitIdentifier(size SectorSize) string {
	challenges := Config{Size: size}.ChallengesPerPartition()
	return fmt.Sprintf("layered_drgporep::PublicParams{ graph: %s, challenges: LayerChallenges { layers: %d, "+
		"max_count: %d }, tree: merkletree-poseidon_hasher-%s }",
		GraphIdentifier(size.Nodes()), size.LayerCount(), challenges, size.Shape())
}

// ParamsName is the name of the parameter files of a sector size, without the extension (c2-circuit.md 7.2).
func ParamsName(size SectorSize) string {
	digest := sha256.Sum256([]byte(CircuitIdentifier(size)))
	return fmt.Sprintf("v%d-stacked-proof-of-replication-merkletree-poseidon_hasher-%s-sha256_hasher-%s",
		ParamsVersion, size.Shape(), hex.EncodeToString(digest[:]))
}
