// Package prove is the work of a GPU worker: per device one engine process, one queue, and the attempts between them.
//
//	fetched ─► booking taken ─► segment mapped ─► turn ─► Start ─► Finish ─► verified ─► result stored ─► freed
//	              (held ahead while the device works)      │          └ beside the next one's Start
//	                                                       └ engine gone: once more, alone; again: the attempt failed
//
// An engine's life, as the device's supervisor sees it:
//
//	Spawn ─► canary (after any fault) ─► serving, parameters loaded one after another ─┬─ recycled (memory drift)
//	  ▲                                                                                 └─ crash, hang, device fault
//	  └────────────────── pause, doubling with each fault in a row ◄───────────────────┘
//
// When an engine crashes with two attempts in it, nobody knows whose fault that was: each is tried once more, alone,
// so that only the culprit fails. A device that faults again and again without a success between is unhealthy: its
// attempts are handed back, and what is fetched, until an engine passes the canary.
//
// Parameters are looked for again and again: a circuit becomes ready by itself when its file comes, and a file that
// must not be used is named. The package owns which engine is the device's; the node's book says what is held.
package prove
