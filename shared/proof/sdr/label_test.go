package sdr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
)

// filled is a 32-byte value of equal bytes.
func filled(b byte) *[32]byte {
	return (*[32]byte)(bytes.Repeat([]byte{b}, 32))
}

func TestLabelsEqualPublishedVectors(t *testing.T) {
	t.Parallel()
	type vector struct {
		nodes   uint64
		id      byte
		version APIVersion
		want    string
	}
	for _, v := range []vector{
		{64, 0, APIVersion1_0, "d3faa96b9a0fba04 ea81a283d106485e e3d51b9afa5ac2b3 0462f4f4f1a68d37"},
		{128, 0, APIVersion1_0, "7e191e52c4a8da86 5ae8a1c9e6fac148 ce239f3b88a894b8 234c00d1dc1d53be"},
		{64, 123, APIVersion1_1, "abb3f38bb70defcf 777a2e4d7769119f 3448959d495490bc 06021188c7a71cb5"},
		{64, 123, APIVersion1_2, "abb3f38bb70defcf 777a2e4d7769119f 3448959d495490bc 06021188c7a71cb5"},
		{128, 123, APIVersion1_1, "22ab81cf68c4676d 7a77a82fc7c9c189 c6c03d32c1e42d23 0f777c18cc2c55bd"},
		{128, 123, APIVersion1_2, "22ab81cf68c4676d 7a77a82fc7c9c189 c6c03d32c1e42d23 0f777c18cc2c55bd"},
	} {
		g := NewGraph(v.nodes, v.version, filled(v.id))
		below, layer := make([][32]byte, v.nodes), make([][32]byte, v.nodes)
		for number := range uint32(11) {
			LabelLayer(g, filled(9), number+1, below, layer, nil)
			below, layer = layer, below
		}
		last := below[v.nodes-1]
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(last[8*i:]) }
		if got := fmt.Sprintf("%016x %016x %016x %016x", word(0), word(1), word(2), word(3)); got != v.want {
			t.Errorf("%d nodes, api %s: label = %s, want %s", v.nodes, v.version, got, v.want)
		}
	}
}

func TestLabelRepeatsItsParentsCyclically(t *testing.T) {
	t.Parallel()
	l := NewLabeler(filled(9))
	for _, count := range []int{1, DRGDegree, Degree, LabelParents} {
		parents := make([][32]byte, count)
		for i := range parents {
			parents[i] = *filled(byte(i + 1))
		}
		all := slices.Repeat(parents, LabelParents)[:LabelParents]
		want := l.Label(3, 7, all)
		if got := l.Label(3, 7, parents); got != want {
			t.Errorf("%d parents: label = %x, want %x", count, got, want)
		}
		if got := l.Label(3, 7, parents[:count/2], parents[count/2:]); got != want {
			t.Errorf("%d parents in two lists: label = %x, want %x", count, got, want)
		}
	}
}

func TestLabelLayerStopsWhenAsked(t *testing.T) {
	t.Parallel()
	const nodes = 1 << 14
	out := make([][32]byte, nodes)
	asked := 0
	LabelLayer(NewGraph(nodes, APIVersion1_1, filled(1)), filled(9), 1, nil, out, func(done int) bool {
		asked = done
		return done < nodes/2
	})
	if asked != nodes/2 || out[nodes/2-1] == [32]byte{} || out[nodes/2] != [32]byte{} {
		t.Errorf("asked at %d of %d; label before set: %t, after: %t", asked, nodes,
			out[nodes/2-1] != [32]byte{}, out[nodes/2] != [32]byte{})
	}
}
