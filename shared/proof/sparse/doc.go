// Package sparse makes an interactive Commit-Phase-1 output of a sector of any size without the sector's data: every
// relation that the circuit and the check before proving demand holds, but only what the challenges open exists.
//
// That works because interactive challenges depend on the replica id and the seed, not on comm_r, and the replica id
// on comm_d only. So the data is periodic, which makes comm_d cheap; replica id, challenges and parents follow; then
// only the opened nodes get labels. A challenged node's label is computed from its parents, layer by layer and in
// ascending order, which is well-founded: DRG parents lie below the node, expander parents in the layer below. The
// labels of other opened nodes are pseudo-random. Nodes of trees C and R-last that no path computes are pseudo-random
// too.
//
// Nobody can seal such a sector's data into such a replica: the output is for benchmarks and tests. The other families
// hash comm_r into their challenges and can't be made this way; they are refused.
package sparse
