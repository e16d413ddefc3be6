// Package assetcopy brings a parameter file from a node that has it to one that needs it, over HTTP between their
// workers.
//
//	coordinator ─ token, to both ─► Giver (Grant) ◄── GET, Range ── Fetcher ─► part file ─► digest ─► renamed
//
//	fetching: room? ─► part (goes on where it was cut) ─┬─ whole ─► digest ─┬─ right ─► synced, listed, renamed
//	             └─ refused, with both numbers          │                   └─ wrong ─► from its start, then Corrupt
//	                                                    └─ cut ─► pause ─► on
//
// A [Giver] gives exactly the files that its Find knows, each only to who has a token that the coordinator issued for
// it, over the bus, to both sides; a token ends by itself. It caps what all transfers together take of the network. A
// [Fetcher] trusts nothing that it gets: length and digest come from the coordinator, and a file has its name only when
// both are right. It bounds the time without a byte, not the time of the whole. A part that is left over by a process
// that died is gone on with; its name holds the digest, so that it is never taken for another file's.
//
// It owns no truth: the file under its own name is the truth, and package srs checks that again. Limits: transfers are
// not encrypted (parameters are public, a token is good for a file), there are no redirects and no proxies.
package assetcopy
