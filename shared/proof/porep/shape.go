package porep

import "fmt"

// Shape is what the circuit's structure depends on.
type Shape struct {
	Layers     int   // SDR layers: 2 or 11
	Challenges int   // challenges per partition
	DataLevels int   // levels of tree D, binary
	Arities    []int // arity of each level of trees C and R-last, from the leaves up: base, sub, top
}

// NewShape derives the shape for a number of nodes (a power of two) and a tree base-sub-top as spec 3.4 writes it, e.g.
// 8-8-2; zero stands for no such level.
func NewShape(nodes, layers, challenges, base, sub, top int) (Shape, error) {
	s := Shape{Layers: layers, Challenges: challenges}
	for 1<<s.DataLevels < nodes {
		s.DataLevels++
	}
	leaves := nodes / max(sub, 1) / max(top, 1)
	for ; leaves > 1; leaves /= base {
		if leaves%base != 0 {
			return Shape{}, fmt.Errorf("tree %d-%d-%d over %d nodes: not a whole number of levels", base, sub, top, nodes)
		}
		s.Arities = append(s.Arities, base)
	}
	for _, arity := range []int{sub, top} {
		if arity > 0 {
			s.Arities = append(s.Arities, arity)
		}
	}
	if 1<<s.DataLevels != nodes || len(s.Arities) == 0 {
		return Shape{}, fmt.Errorf("tree %d-%d-%d over %d nodes: nodes must be a power of two above 1", base, sub, top, nodes)
	}
	if layers != 2 && layers != 11 {
		return Shape{}, fmt.Errorf("%d layers: the circuit supports 2 and 11", layers)
	}
	return s, nil
}
