// Package memledger is the ledger in memory: the machine of package ledger behind a lock. It is the fake for tests and
// simulations, which can wipe it, roll it back, take it away and move its clock; it forgets everything at exit.
//
// It owns no truth beyond its process. Limits are those of package ledger.
package memledger
