// Package job is the vocabulary of the rack: names of jobs, tenants, nodes and devices, and the record of one job with
// its legal transitions. The record in the store is the truth about a job (design section 2, "who owns which truth");
// this package is pure: it has no clock, no store and no bus, it only says what may follow what.
//
//	waiting ─claim─► reserved ─► synthesizing ─► sealed ─► proving ─accept─► verified
//	   ▲                 │            │            │          │
//	   └── fail, lose, hand back ◄────┴────────────┴──────────┘        (fence raised, history kept)
//	any but verified ─► failed | cancelled
//
// An attempt is one try of one partition's whole path on one node, named by job, partition and fence. The fence rises
// at each claim and whenever a running attempt is given up, so that at most one attempt per partition can change
// anything (invariant 5); every method that takes an attempt refuses a stale one with [ErrStale].
//
// A verified partition never leaves that state (invariant 6); an ended job never changes again (invariant 3).
package job
