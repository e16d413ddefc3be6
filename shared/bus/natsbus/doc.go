// Package natsbus is the bus on NATS JetStream. It owns no truth: streams and buckets are the server's.
//
//	         Connect                server gone                 Close
//	(none) ──────────> connected ─────────────────> away ──┐ ─────────> closed
//	                       ^      tries for ever, wait      │
//	                       └──── from 0.1 s to 5 s, drawn ──┘
//
// While the server is away, calls wait for it until their context ends, plain sends fail at once (a late heartbeat is
// worse than none), fetches and watches wait. A connection that is there again makes watches read everything anew and
// tell differences, and starts fetches again.
//
// Streams and buckets that were set up by Setup on this connection, and consumers asked for by Queue, are made again
// when somebody deletes them. A server whose store is gone thus comes back empty and works.
//
// In a cluster a stream's leader is the one that reads are answered by: what another server told is refused, objects
// are listed by the leader's word and then asked for one by one, and keys and watches, which come from any server, are
// compared with the keys that the leader has. While a stream has no leader, which takes seconds when a server is lost,
// reads are repeated until the context ends; writes of keys are not: one that was not answered may have been done.
//
// Limits: one message at most the server's max_payload (1 MiB) with its header; objects go in pieces of just under 1
// MiB, each acknowledged before the next, under an own message id, so that a piece can be sent again after an outage.
// Publishing and acknowledging are answered by the server; with `sync_interval: always` it has then called fsync.
//
// What it does not do: it keeps no results while the server is away (the caller does), and it never deletes a stream or
// a consumer.
package natsbus
