// Package artifact is what is kept per circuit beside its parameters: the totals and the densities that line the
// assignment up with the queries of a parameter file (spec c2-circuit.md 1.4). It is built once by a walk over the
// circuit's structure, stored with a checksum, and the same for every sector and partition of a size.
//
// Limits: 33 MB at 32 GiB. An artifact is derived data: a file that does not check out is built again.
package artifact
