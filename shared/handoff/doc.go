// Package handoff passes a synthesized partition from one process of a node to another, as a file in shared memory: a
// spill segment. It owns the truth about which segments exist on the node and in which state they are.
//
//	<spill>/seg/<job>.<partition>.<fence>.seg     one attempt's segment: a header page, then the body
//	<spill>/pool/…                                segments that were given back, with their pages already touched
//
//	           Create                    Seal                   GiveBack
//	(nothing) ───────► created (Draft) ───────► sealed (Segment) ───────► void, in the pool ──► next Create
//	                      │                        │                          └─ idle ──► unlinked
//	                      └──── owner dies ────────┴──── Sweep ──► unlinked
//
// Space is allocated before it is mapped, so no store can end in SIGBUS; what does not fit is a [Shortage] with both
// numbers. The file is made under a hidden name and renamed into place once its header says which attempt it is of, so
// whatever lay under that name before (a leftover, a link, a pipe) is replaced and never followed. The seal is one
// store of eight bytes, after everything else. A reader opens without following links or blocking, checks type, owner,
// header and length before it maps, and maps nothing that is not sealed.
//
// The first touch of fresh 4 KiB pages costs more than synthesis (platform facts 6), so fresh files are filled by
// write, and files that were given back are lent again: by exact size, newest first. They give way when space is short.
//
// Whoever has a segment open holds a shared flock on it. A sweep removes what nobody wants and nobody holds, what an
// earlier boot left, and pool files that lay idle; it never touches a file that is not ours. The body is opaque here:
// it brings its own checksums (proof/compact), and the header only records a checksum of both its ends, where those
// checksums are, so that an old body under a new header is noticed.
//
// Every mapping of a segment is counted by the flight recorder that Config or Want names, as class assignment, from
// Create or Open to the end of the mapping; Spill.Flight reports the files themselves.
//
// Limits: one host, one file system per folder; processes of other users take part only through a common group; the
// mapping of a Draft or Segment must not be used after Close or GiveBack. It does not know what fits by the books: that
// is the agent's.
package handoff
