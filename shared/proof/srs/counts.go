package srs

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// Sizes in a parameter file, bytes (spec c2-formats.md 3.3, 3.4).
const (
	// G1Bytes is an uncompressed G1 point, G2Bytes an uncompressed G2 point.
	G1Bytes = 96
	G2Bytes = 192

	countBytes   = 4                         // a count: u32, big-endian
	keyHeadBytes = 3*G1Bytes + 3*G2Bytes     // the six fixed points
	icOffset     = keyHeadBytes + countBytes // where the IC points start
)

// Counts are the numbers of points of one circuit's parameters (spec c2-circuit.md 7.4). The zero value means that
// nothing is known.
type Counts struct {
	IC int `json:"ic"` // inputs, ONE included
	H  int `json:"h"`  // domain size - 1
	L  int `json:"l"`  // auxiliaries
	A  int `json:"a"`  // inputs and auxiliaries that occur in A
	B  int `json:"b"`  // inputs and auxiliaries that occur in B; as many in G1 as in G2
}

// CountsOf gives the counts of a circuit from its totals and densities (spec c2-circuit.md 1.4).
func CountsOf(totals r1cs.Position, density *r1cs.Density) Counts {
	return Counts{
		IC: totals.Inputs,
		H:  1<<totals.DomainBits() - 1,
		L:  totals.Aux,
		A:  totals.Inputs + ones(density.AAux),
		B:  ones(density.BInputs) + ones(density.BAux),
	}
}

func ones(words []uint64) int {
	n := 0
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	return n
}

// KeyBytes is the length of the `.vk` file.
func (c Counts) KeyBytes() int64 { return icOffset + G1Bytes*int64(c.IC) }

// ParamsBytes is the length of the `.params` file (spec c2-formats.md 3.4).
func (c Counts) ParamsBytes() int64 {
	g1 := int64(c.H) + int64(c.L) + int64(c.A) + int64(c.B)
	return c.KeyBytes() + sectionCount*countBytes + G1Bytes*g1 + G2Bytes*int64(c.B)
}

// String lists the counts by their names in the file format.
func (c Counts) String() string {
	return fmt.Sprintf("ic %d, h %d, l %d, a %d, b %d", c.IC, c.H, c.L, c.A, c.B)
}

// differences names the counts in which the two differ, with the values of each: the first list is c's.
func (c Counts) differences(other Counts) (mine, others string) {
	var left, right []string
	add := func(name string, a, b int) {
		if a != b {
			left = append(left, fmt.Sprintf("%s %d", name, a))
			right = append(right, fmt.Sprintf("%s %d", name, b))
		}
	}
	add("ic", c.IC, other.IC)
	add("h", c.H, other.H)
	add("l", c.L, other.L)
	add("a", c.A, other.A)
	add("b", c.B, other.B)
	return strings.Join(left, ", "), strings.Join(right, ", ")
}
