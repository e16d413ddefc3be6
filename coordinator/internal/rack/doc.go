// Package rack is what a coordinator knows of the nodes from their beats: which worker processes live, what they offer,
// what they work on and how it advances. Every instance has it; the leader plans with it and counts leases by it.
//
// It owns no truth: nodes do, and beats repair whatever was missed. A process that has not beaten for [Config.Lease]
// leaves (B33); one that was replaced by a later start in the same role leaves as soon as it misses a few beats (B32).
//
// Limits: [NodesMax] nodes with [ProcessesMax] processes each; what goes beyond is dropped and counted. It does not
// know the ledger.
package rack
