// Package ledgertest is the suite that every ledger must pass: text scripts with expected transcripts (testdata, the
// readable part of the specification), a random comparison with the machine of package ledger, and clients that race.
//
//	backend ──Open──► ledger ◄── same commands ──► ledger.Machine
//	                     └──────── same answers, same books ───┘
//
// It owns no truth. Run it with -rewrite to write the transcripts anew from memledger, and read the difference.
package ledgertest
