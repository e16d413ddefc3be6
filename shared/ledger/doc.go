// Package ledger is the books of the rack: how many bytes of which pool of which node are granted to whom. It owns the
// truth "bytes granted" (design section 2). [Machine] is the specification, a pure state machine without clock and
// store; [Ledger] is the port that the coordinator uses; memledger keeps the machine in memory, redisledger keeps the
// same books in Redis, and ledgertest is the suite that holds both to the machine.
//
//	                       ┌─────Renew────┐
//	      Reserve/Transfer ▼              │   lease over: Expire
//	(none) ─────────────► live ───────────┴───────────────────► limbo
//	  ▲                    │ Shrink: bytes fall                   │
//	  └──── Release, Transfer ◄───┴─── Release, Declare without it ◄───┘
//
// A reservation covers one attempt's whole path on one node, in all pools or in none. Time never frees bytes: a lease
// that ends fences the attempt out (limbo), its bytes count until the node shows that they are gone. A reservation of a
// higher fence puts lower ones of its partition into limbo; one of a lower fence is refused.
//
// # Pools
//
// Pools are independent accounts. Bytes that count twice are booked twice by the caller: a segment in shm is also
// bytes of ram, a pinned page is also one of ram, so [Amounts] name both explicitly.
//
// # Assets
//
// What attempts of one circuit share (parameters, artifact) is booked once per node and pool however many use it (B40),
// stays when the last one ends, and can be evicted when nobody uses it; a [Refusal] lists what is idle. The asset
// [AssetSegments], the pool of free segments, is what the node last reported; it gives way to any reservation, because
// the node lends or unlinks free segments before it makes new ones.
//
// # When a book is open
//
// A node gets grants only while its book is open: declared in the caller's epoch, in the present life of the store, and
// not behind what this client has seen of it (a store that was rolled back has fewer operations). Everything but
// Begin, Declare, Node, Nodes and Forget is refused on a closed book with a [Refusal] that says why; the node's next
// declaration opens it. It books what the node holds, and what may still begin there ([Declaration].Claims): those
// tasks are out, and no host has them yet. A caller of a lower term than the book has seen is refused with fault.Lost.
//
// # Repeating calls
//
// All operations may be repeated when their outcome is unknown (a time-out): each has its effect at most once. Releases
// that could not be sent are kept by the caller and sent later (B72).
//
// # Clock
//
// Times are the store's and never fall: where its clock goes back, a book goes on from the time of its last change and
// keeps so far ahead until the clock has passed that, so that leases end all the same. When more than a lease has
// passed since the book was last written, nobody was looking or the clock jumped; then all leases begin anew and
// nothing expires. So Expire must be called several times within a lease.
//
// Limits: EntriesMax reservations and AssetsMax assets a node, PoolsMax pools, amounts below 2^53. It does not decide
// who waits for what, does not know why bytes are needed, and does not enforce anything on a node: the node's own book
// has the last word.
package ledger
