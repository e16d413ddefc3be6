// Package engine is both ends of an engine: the process that drives one device. A crash, hang or lost device context
// costs what that process worked on, never the worker (design section 5).
//
//	worker: Spawn ─► Engine ══ socket pair ══► Serve: process with the device, its parameters and the mapped segments
//	                 Load · Prepare ─► Start ─► Finish ─► 192 bytes · Drop · Evict · Canary
//
//	starting ─ready─► serving ─Close─► gone
//	    └────────────────┴── crash, Kill ─► gone, with a [Crash] that has the signal and the last words
//
// The two speak frames: a length and a JSON body of at most [FrameBytesMax], over one stream socket; a segment's file
// travels with the frame that names it. Both sides are of one build (the worker starts itself again), so there is no
// negotiation. The engine owns what is on its device and what it mapped; it knows nothing of jobs, fences or the bus.
//
// Progress is counted by the engine: stages begun and processor time used. It is sent every second and at each stage,
// so a frozen process shows none; a stage that never ends is bounded by the worker's clock (Config.StageMax).
package engine
