// Package synth is the work of a synthesis worker: from a slice to a sealed segment that is announced to a device.
//
//	claimed ─► slice (digest checked) ─► witness ─► booked ─► segment created ─► synthesized ─► sealed ─► handed over
//	                                                                                                       │
//	                                            acknowledged ◄─ prove task published (id = attempt) ◄──────┘
//
// The fence is compared before the start (by the loop), before the seal and before the publication. Whatever goes wrong
// before the hand-over gives the segment and the booking back here; after it they are the device's worker's, unless
// nobody could be told: then they are taken back.
//
// A segment is created, and each section of the circuit walked, on a thread that is bound to the processors next to the
// attempt's device, so that fresh pages come from that NUMA node. Reused segments lie where they lay.
//
// The package owns nothing but the attempts it works on; the node's book (package agent) says what fits.
package synth
