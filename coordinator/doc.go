// Package coordinator is the program that takes jobs, plans them onto nodes and answers for them. Several may run; each
// does intake and answers questions, one leads (internal/lead) and does the rest (internal/dispatch):
//
//	NATS ──► intake ──► store ◄──────── dispatch ──► scheduler (pure)
//	  │                   ▲                 │
//	  └── beats ──► rack ─┴── api           ├──► ledger (Redis): only coordinators talk to it
//	                                        └──► assemble: verify, put together
//
// It holds nothing that is not also in NATS or Redis: it can be killed at any moment.
package coordinator
