package sdr

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"pgregory.net/rapid"
)

// parentsDigest is SHA-256 over the parents of all nodes as u32 little-endian.
func parentsDigest(g *Graph) string {
	h := sha256.New()
	var parents Parents
	var row [4 * Degree]byte
	for node := range g.Nodes() {
		g.Parents(node, &parents)
		for i, parent := range parents {
			binary.LittleEndian.PutUint32(row[4*i:], parent)
		}
		h.Write(row[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

func TestParentGraphsHaveTheirPublishedDigests(t *testing.T) {
	t.Parallel()
	for number, want := range map[RegisteredProof]string{
		0: "3da49221e2ed55371b86d0bf3d6526fcf128af61bed904f966428db1b531750d",
		5: "840057702eea7652cf97e04306c30fe57174714d90de156a25eddd6075c25b97",
		1: "a76604f2f59f2744c7151653bbb1d8596b6b57d295e6fa6c1f0c41d725b502ce",
		6: "03cd13565ded97c240a5f52e54295ad127bd0461b57904cb3a4d79b097bbecab",
	} {
		t.Run(number.String(), func(t *testing.T) {
			t.Parallel()
			if got := parentsDigest(number.Config().Graph().Tabulated()); got != want {
				t.Errorf("digest = %s, want %s", got, want)
			}
		})
	}
}

func TestTabulatedGraphIsTheSame(t *testing.T) {
	t.Parallel()
	graphs := map[RegisteredProof][2]*Graph{}
	for _, number := range []RegisteredProof{0, 6, 7} {
		g := number.Config().Graph()
		graphs[number] = [2]*Graph{g, g.Tabulated()}
	}
	rapid.Check(t, func(t *rapid.T) {
		pair := graphs[rapid.SampledFrom([]RegisteredProof{0, 6, 7}).Draw(t, "proof")]
		node := rapid.Uint64Range(0, pair[0].Nodes()-1).Draw(t, "node")
		var plain, tabulated Parents
		pair[0].Parents(node, &plain)
		pair[1].Parents(node, &tabulated)
		if plain != tabulated {
			t.Fatalf("node %d: %v, tabulated %v", node, plain, tabulated)
		}
	})
}

func TestParentsLieBelowTheirNode(t *testing.T) {
	t.Parallel()
	var graphs []*Graph
	for number := range RegisteredProof(RegisteredProofCount) {
		graphs = append(graphs, number.Config().Graph())
	}
	rapid.Check(t, func(t *rapid.T) {
		g := graphs[rapid.IntRange(0, len(graphs)-1).Draw(t, "proof")]
		node := rapid.Uint64Range(2, g.Nodes()-1).Draw(t, "node")
		var parents Parents
		g.Parents(node, &parents)
		for _, parent := range parents.DRG() {
			if uint64(parent) >= node {
				t.Fatalf("drg parent %d of node %d", parent, node)
			}
		}
		for _, parent := range parents.Exp() {
			if uint64(parent) >= g.Nodes() {
				t.Fatalf("expander parent %d of %d nodes", parent, g.Nodes())
			}
		}
		predecessor := 0
		if g.version == APIVersion1_0 {
			predecessor = DRGDegree - 1
		}
		if uint64(parents[predecessor]) != node-1 {
			t.Fatalf("parents %v of node %d have no predecessor at %d", parents, node, predecessor)
		}
	})
}

func TestExpanderParentsAreTruncatedInVersion1_0(t *testing.T) {
	t.Parallel()
	// Above 2^29 nodes the old rule can't reach the upper nodes; the new one does. Otherwise the permutation is shared.
	id := [32]byte{8}
	before, after := NewGraph(1<<30, APIVersion1_0, &id), NewGraph(1<<30, APIVersion1_1, &id)
	var truncated, whole Parents
	differing := 0
	for node := uint64(1 << 29); node < 1<<29+64; node++ {
		before.Parents(node, &truncated)
		after.Parents(node, &whole)
		for i := range ExpDegree {
			if truncated.Exp()[i] != whole.Exp()[i]%(1<<29) {
				t.Fatalf("node %d: truncated %v of %v", node, truncated.Exp(), whole.Exp())
			}
			if truncated.Exp()[i] != whole.Exp()[i] {
				differing++
			}
		}
	}
	if differing == 0 {
		t.Error("no expander parent of 512 was truncated")
	}
}

func TestExpanderIsAPermutation(t *testing.T) {
	t.Parallel()
	g := NewGraph(100, APIVersion1_1, &[32]byte{3})
	uses := make([]int, g.Nodes())
	var parents Parents
	for node := range g.Nodes() {
		g.Parents(node, &parents)
		for _, parent := range parents.Exp() {
			uses[parent]++
		}
	}
	for node, count := range uses {
		if count != ExpDegree {
			t.Errorf("node %d is a parent %d times, want %d", node, count, ExpDegree)
		}
	}
}

func BenchmarkGraphParents(b *testing.B) {
	g := RegisteredProof(8).Config().Graph()
	var parents Parents
	node := uint64(1)
	for b.Loop() {
		node = node*2862933555777941757 + 3037000493
		g.Parents(node%g.Nodes(), &parents)
	}
}
