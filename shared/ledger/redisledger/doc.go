// Package redisledger keeps the ledger's books in Redis 7, or in the embedded miniredis: one Lua script per operation,
// the same text on both, called with EVALSHA. It owns the truth "bytes granted" while the store lives; see package
// ledger for what the operations mean.
//
// Keys, one per node, two for the ledger, none with a time to live: their number is bounded by the number of nodes
// (B80). A book is one hash, so the store can lose it whole or not at all.
//
//	<prefix>:{<node>}    hash, see scripts/prelude.lua
//	<prefix>:nodes       set of nodes with books
//	<prefix>:reign       highest term
//
// A call costs the store what it does in Lua and, more than that, each command in it: a reserve is three of them, a
// release five.
//
// # Lives of the store
//
//	no life ──first call──► life(run_id) ──NOSCRIPT: ask again──► life(other run_id)
//
// Each script's text begins with the run_id of the server that it was loaded into, so a script can't run in another
// life than the one it was made for: after a restart or a failover the first call is answered NOSCRIPT, the client
// asks for the run_id, and every book that was declared in another life is closed until its node declares again. In
// each new life the server's settings are checked, too: an eviction policy is refused (B77). Within one life a store
// that goes back (a replica that syncs anew) is found by the count of operations that this client saw last.
// miniredis has no run_id; a key that it forgets with everything else takes its place.
//
// # Faults
//
// Every call is bounded by Config.Timeout, and a connection on which one ran out of time is dropped, not used again
// (B79). LOADING, BUSY and the like are fault.Transient (B75). A call whose outcome is unknown may be repeated. A
// book that was evicted is closed; fields that somebody took out by hand are found by their count when it is read.
//
// # Order
//
// Operations are linearizable, with the machine of package ledger as the specification: one script each. Declare reads
// the book, computes, and writes if nobody else has written meanwhile; it bears the time of the reading, which can be
// a round trip older than the writing.
//
// It doesn't retry, doesn't queue what could not be sent, and doesn't speak to Redis Cluster or Sentinel.
package redisledger
