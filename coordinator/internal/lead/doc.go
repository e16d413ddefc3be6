// Package lead elects one leader among the coordinators. It owns one truth, the key wire.LeadKey in the bucket c2-lead:
// who leads, in which term, and the life (epoch) of the ledger.
//
//	              no new revision for a lease, by the own clock; or released
//	following ─────────────────────────────────────────────────────────────► taking over (term + 1, by compare-and-swap)
//	    ▲                                                                          │
//	    └──── somebody else wrote, or no renewal for a lease, or the work ended ── leading (renews four times a lease)
//
// A host that stood still for longer than the lease tries to renew once more before it steps down: its key tells
// whether somebody else has led meanwhile. If not the reign goes on in its term, for nothing can have happened in
// another one. An instance that could not do all of the work (Config.Unable) lets others go first, and gives way to
// one that can.
//
// No clock is compared with another machine's: a leader counts its lease from before it sent the renewal that
// succeeded, a follower from when it first saw a revision, so the leader has stepped down before anybody takes over.
// What a deposed leader still had under way is refused elsewhere: by the revision of a record, by the term in the
// ledger.
//
// It does not know what a leader does.
package lead
