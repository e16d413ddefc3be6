package c1

import (
	"fmt"
	"strings"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// treeArity is the arity of the base and the sub level of trees C and R-last; the top level has arity 2.
const treeArity = 8

// shape is what the sector size alone decides (c2-formats.md 1.5, 1.7).
type shape struct {
	size sdr.SectorSize
	// nodes is the number of leaves of every tree, dataPath the length of a path in tree D.
	nodes            uint64
	layers, dataPath int
	// base, sub and top are the lengths of the parts of a path in tree C or R-last; variant names the form they make.
	base, sub, top int
	variant        string
	// challenges are those of one partition, in every family.
	challenges int
	// partitionsMax is the number of partitions of the largest family.
	partitionsMax int
}

// shapeOf gives the shape of a published sector size.
func shapeOf(size sdr.SectorSize) shape {
	levels := size.TreeLevels()
	tree := size.Shape()
	sh := shape{
		size: size, nodes: size.Nodes(), layers: size.LayerCount(), dataPath: size.TreeDLevels(), variant: "Single",
		challenges:    sdr.Config{Size: size}.ChallengesPerPartition(),
		partitionsMax: sdr.Config{Size: size, Family: sdr.NonInteractive}.PartitionCount(),
	}
	if tree.Sub > 0 {
		sh.sub, sh.variant = 1, "Sub"
	}
	if tree.Top > 0 {
		sh.top, sh.variant = 1, "Top"
	}
	sh.base = len(levels) - sh.sub - sh.top
	return sh
}

// parseTag finds the size that a key of vanilla_proofs names.
func parseTag(tag string) (sdr.SectorSize, bool) {
	for _, size := range sdr.PublishedSizes() {
		if tagOf(size) == tag {
			return size, true
		}
	}
	return 0, false
}

// tagOf is the key of vanilla_proofs for a size.
func tagOf(size sdr.SectorSize) string { return "StackedDrg" + size.String() + "V1" }

// supportedSizes lists the sector sizes for an error.
func supportedSizes() string {
	names := make([]string, 0, 5)
	for _, size := range sdr.PublishedSizes() {
		names = append(names, fmt.Sprintf("%d (%s)", uint64(size), size))
	}
	return strings.Join(names, ", ")
}
