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
// Limits: [BookingsMax] bookings; one book per spill folder; every member sees the same capacity. The agent does not
// talk to the ledger and knows no bus: beats go through a function.
package agent
