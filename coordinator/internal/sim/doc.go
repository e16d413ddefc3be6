// Package sim simulates a rack: the real coordinators (election, leader, scheduler, records, ledger, verification)
// against modelled hosts, on a bus and a ledger in memory, in virtual time. It owns no truth; all of it is tests.
//
//	seed ─► faults ──► links (bus, ledger) ◄── coordinators: store, rack, lead, dispatch, scheduler
//	                        ▲                        ▲
//	                        │                  hosts: synthesis, device, book; crash, pause, lie, run full
//	                 watchers: every revision of every record, every book each second
//
// A run has three parts: work under faults, for as many steps as are asked for, a healed rack that has to end every
// accepted job within a bound of virtual time, and the look at what is left. A step is one delivered event (a call, an
// answer, a message, a delivery, a revision of a record) or one fault; idle ticks are none. The watchers cite design
// section 4's invariants 1 to 7 and 9. Records are looked at at each revision, books at each change. Invariant 1 is
// watched at the moment of each grant: what is booked, held, and may still begin, each attempt counted once, against
// what the host has; and no grant on a node whose last declared report is older than the loss of its book. A
// declaration
// may bring a book over its capacity for a while: it books what the node says that it holds, beside what is granted.
//
// Time is that of a testing/synctest bubble: the coordinators' own goroutines and timers run unchanged, and hours pass
// in seconds. Each seed is a process with one thread. With SIM_EXACT=1 the tests are built with a Go of which a few
// pieces were edited (go build -overlay; the installed Go stays as it is), so that the order of goroutines,
// maps, timers
// and select is the same in each process, and a seed does the same each time. Without it a seed brings its faults back
// always and its outcome nearly always. SIM_LOG=1 is a run of its own kind: it allocates differently, and may differ.
//
//	go test ./coordinator/internal/sim -run Sim           # the kept seeds and a few more
//	make sim SIM_SEEDS=2000                               # as many, and the broken builds
//	make sim-long SIM_TIME=2h SIM_FIRST=50000
//	SIM_EXACT=1 SIM_SEED=17 go test ./coordinator/internal/sim -run Sim -v -count 1
//
// A test behind the tag long builds the product with each of twelve mistakes, by edits of its sources in the same way,
// and has a named seed show each.
//
// Not modelled: what workers do beside comparing fences (package attempt has its tests), files, disks, credentials,
// clock skew between hosts.
package sim
