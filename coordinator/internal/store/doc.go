// Package store keeps the jobs of the rack. The records in the bucket c2-jobs are the truth about job, partition state,
// finished proofs and fence (design section 2, "who owns which truth"); this package is the only one that writes them.
//
//	Create   by the coordinator that did the intake: (tenant, key) entry, record, entry confirmed
//	Update   by the leader only, compare-and-swap
//	Sweep    by the leader: what is past retention, and objects without a record, go
//
// Every instance follows the bucket and holds all records in memory: status and lists are answered from there, and the
// leader takes what it has to look at from a [Feed]. A record handed out is shared and must not be changed.
//
// A record that the bucket has at a lower revision than was known is believed after [Config.RollbackAfter]: NATS was
// restored from a backup.
//
// # Keys (invariant 7)
//
// The entry of an idempotency key names the job and the hash of its input. It is written first and confirmed after the
// record; who finds an unconfirmed entry without a record for [Config.KeyGrace], by its own clock, takes it over by
// compare-and-swap. Confirming is one, too: so either the first job confirms or the second takes over, never both, and
// the leader confirms before it starts anything ([Store.Confirm]).
//
// # Limits
//
// The buckets are never filled by what is only kept: ended jobs, audit records and inputs of failed jobs go before
// their time when their share is used up ([Config.BytesMax]), and [Store.Room] refuses jobs that could not end.
//
// A record is kept below RecordBytesMax: old attempts' messages are cut first, then attempts are counted instead of
// listed. What the bucket lost by another hand
// than ours is remembered, up to 1024 jobs, so that a client is told so (B37).
package store
