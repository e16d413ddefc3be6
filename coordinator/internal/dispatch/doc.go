// Package dispatch is the leader's work: it turns what happens on the rack into events for the scheduler, and the
// scheduler's decisions into reservations, claims and messages.
//
//	records, beats, reports, results, operators ──► loop ──► scheduler.Core ──► decisions
//	                      ▲                                                        │
//	                      └──── outcomes ◄──── lanes: ledger, records, messages ◄──┘
//
// One goroutine, the loop, owns all state here and never waits for anything; slow calls run in lanes, one after another
// for each node and each job, and post their outcomes back.
//
// # The way of an attempt
//
//	ledger.Reserve or Transfer ─► record: Claim (fence) ─► publish c2.synth.<node> (message id = attempt)
//
// A crash between any two is healed (B48): a reservation that no record knows and no host holds is released, a claim
// without a message is published again with the same id. A result is verified, accepted by compare-and-swap, and only
// then acked. Bytes go back to the ledger on the node's word alone: a report that says so, or a host report whose book
// has the attempt no more. Time frees nothing: a lease that ends fences the attempt out and leaves its bytes in limbo.
//
// # Truths
//
// It owns none. Jobs are the store's, bytes granted the ledger's, bytes held the nodes', the order of waiting the
// scheduler's. Everything is read again at each take-over and compared on a timer (see internal/reconcile).
//
// While the ledger is away nothing is granted; running work goes on, and releases are kept and sent later (B72).
package dispatch
