// Package sim simulates a rack: the real coordinators (election, leader, scheduler, records, ledger, verification)
// against modelled hosts, on a bus and a ledger in memory, in virtual time. It owns no truth; all of it is tests.
//
//	seed ─► faults ──► links (bus, ledger) ◄── coordinators: store, rack, lead, dispatch, scheduler
//	                        ▲                        ▲
//	                        │                  hosts: synthesis, device, book; crash, pause, lie, run full
//	                 watchers: every revision of every record, every book each second
//
// A run has three parts: work under faults, a healed rack that has to end every accepted job within a bound of virtual
// time, and the look at what is left. The watchers cite design section 4's invariants 1 to 7 and 9. Invariant 1 is
// watched
// at the moment of each grant: what is booked, held, and may still begin, each attempt counted once, against what the
// host
// has; and no grant on a node whose last declared report is older than the loss of its book. A book that is read may be
// over its capacity for a while after the ledger was set back: it then has what had been released as well, which only
// the node's evidence may free.
//
// Time is that of a testing/synctest bubble: the coordinators' own goroutines and timers run unchanged, and hours pass
// in seconds. What each seed decides (who fails, when, how long each call takes) is the same in each run; the order of
// goroutines that are ready at one instant is the Go scheduler's. So a seed brings its faults back always, and its
// outcome nearly always: run one that failed some times over.
//
//	go test ./coordinator/internal/sim -run Sim           # the kept seeds and a few more
//	SIM_SEEDS=200 go test ./coordinator/internal/sim -run Sim   # make sim
//	SIM_SEED=17 SIM_LOG=1 go test ./coordinator/internal/sim -run Sim -count 5
//
// Not modelled: workers' own code (package attempt has its tests), files, disks, credentials, clock skew between hosts.
package sim
