// Package agent keeps the node's own book and speaks for its host. It owns the truth about which bytes are really held
// on a node (design sections 4 and 5): every worker process books an attempt here before it takes any memory, whatever
// the ledger granted, and the host's report, made from the book, is the evidence that frees bytes in the ledger.
//
// # The book
//
// The book is files in the spill folder, so that it outlives every process and needs no server:
//
//	book/lock                  flock around every change: check and add are one step
//	book/<attempt>             one booking: amounts, stage, circuit, owner; replaced whole by rename
//	book/asset~<pool>~<name>   an asset, held by a shared flock of each process that uses it
//	book/proc.<instance>       held by an exclusive flock as long as that worker lives
//	book/freed.<attempt>       it ended here and is not booked again, until its record says that it is over
//	host.lock                  held by the one process that speaks for the host
//	agent.id                   names the agent, as long as the folder lasts
//
// A booking's way:
//
//	        Admit                HandOver                 Take                Remove
//	(none) ───────► held by synth ───────► handed over ───────► held by gpu ───────► (none)
//	  ▲                  │ dies                 │                   │ dies
//	  └── no segment ◄───┴───── Mend ◄──────────┴── stale ◄─────────┘── segment sealed: handed over again
//
// A veto ([Veto], kind Exhausted) is the answer when bookings, assets, free segments that cannot give way, and what is
// asked for are more than the capacity of a pool; it costs nothing. A booking goes only when its bytes are gone: its
// segment given back and its owner either done or dead. Death is proved by the flock of book/proc.<instance>, which the
// kernel drops after the memory of the last process that inherited it, or by another boot id. Time proves nothing. A
// live owner whose Remove failed abandons the booking; its agent removes it then.
//
// # The agent
//
// Every worker process runs an [Agent]; the first to lock host.lock mends the book, sweeps segments and adds the host's
// report to its beats; when it dies, the next takes over.
//
// # Claims
//
// Several agents on one host, each with its own spill folder, must not book the same memory twice. Each claims what its
// node may book, at most, in a folder that all agents of the host have ([TakeClaim]), before its first booking:
//
//	lock                       flock around every claim: check and add are one step
//	<agent>.claim              one agent's claim, held by a shared flock of each of its workers and engines
//
// A claim that does not fit beside those of agents that live is refused ([ClaimRefusal], kind Conflict, names who
// has it). A claim that nobody holds, or of another boot, is void. Sums are bounded by what there is: in the
// agent's control group, and on the whole host.
//
// # Peaks
//
// A [Meter] measures how much private memory a process has while attempts are at work in it.
//
// Limits: [BookingsMax] bookings; one book per spill folder; every member sees the same capacity. The agent does not
// talk to the ledger and knows no bus: beats go through a function.
package agent
