// Package sim simulates a rack: the real coordinators (election, leader, scheduler, records, ledger, verification)
// against hosts with the real loop of workers and modelled work, on a bus and a ledger in memory, in virtual time. It
// owns no truth; all of it is tests.
//
//	seed ─► faults ──► links (bus, ledger) ◄── coordinators: store, rack, lead, dispatch, scheduler
//	                        ▲                        ▲
//	                        │                  hosts: package attempt's loops; modelled work, device, book
//	                 watchers: every revision of every record, every book at each change
//
// The hosts' files are modelled as package agent keeps them: bookings outlive their workers, and so do the marks of
// attempts that ended. Each machine has a clock of its own, which is wrong and jumps; timers and measured times are
// true, as they are with a monotonic clock. A process that is stopped does nothing that anybody sees until it goes on;
// its timers run on, and what it was about to send may go out long after its time.
//
// A run has four parts: work under faults, for most of the steps that are asked for, a healed rack that has to end
// every accepted job within a bound of virtual time, the look at what is left, and work in peace for what is missing of
// the steps. A step is one delivered event (a call, an answer, a message, a delivery, a revision of a record) or one
// fault; idle ticks are none. The watchers cite design section 4's invariants 1 to 7 and 9. Records are looked at at
// each revision, books at each change. Invariant 1 is watched at the moment of each grant: what is booked, held, and
// may still begin, each attempt counted once, against what the host has; and no grant on a node whose last declared
// report is older than the loss of its book. A declaration may bring a book over its capacity for a while: it books
// what the node says that it holds, beside what is granted.
//
// Time is that of a testing/synctest bubble: the coordinators' own goroutines and timers run unchanged, and hours pass
// in seconds. Each seed is a process with one thread. With SIM_EXACT=1 the tests are built with a Go of which a few
// pieces were edited (go build -overlay; the installed Go stays as it is), so that the order of goroutines, maps,
// timers and select is the same in each process, and a seed does the same each time. Without it a seed brings its
// faults back always and its outcome nearly always. SIM_LOG=1 is a run of its own kind: it allocates differently, and
// may differ.
//
//	go test ./coordinator/internal/sim -run Sim           # the kept seeds and a few more
//	make sim SIM_SEEDS=2000                               # as many, and the broken builds
//	make sim-long SIM_TIME=2h SIM_FIRST=50000
//	SIM_EXACT=1 SIM_SEED=17 go test ./coordinator/internal/sim -run Sim -v -count 1
//
// A test behind the tag long builds the product with each of thirteen mistakes, by edits of its sources in the same
// way, and has a named seed show each.
//
// Not modelled: files, disks, segments, engines and devices beyond the time that they take and how they fail,
// credentials, assets that are loaded and evicted. Clocks are true in builds that are not exact.
package sim
