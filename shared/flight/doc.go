// Package flight is the flight recorder: it counts every large buffer of a process, in pieces and bytes, at each stage
// of its life. It owns the truth about which of these buffers the process has and how far each is; what is booked for
// them is the ledger's and the node book's.
//
//	Allocate ─► allocated ─ Seal ─► sealed ─ HandOver ─► handed over ─┐
//	                                                                  ├─ Release ─► released ─ Gone ─► gone
//	Map ──────► mapped ─ OnDevice ─► on the device ───────────────────┘
//
// A buffer is a typed handle, a [Buffer], made together with the memory and kept beside it; its transitions are
// methods. A stage may be left out, none can be entered twice and none backwards: what tries to is a defect, which is
// counted and reported, or panics where [Config.Strict] says so. Released is when nobody needs the memory any more,
// gone when the system has it back; the lag between the two is a histogram. For memory of the Go heap, [OnHeap] has the
// garbage collector say when it is gone, and a piece that is collected without a release is a defect too.
//
// The classes are the ledger's, one list for booking and reporting. A buffer that stays between attempts, as parameters
// do, is an asset ([Buffer.Keep]): when nothing runs, only assets are left ([Report.Idle]). What else is left is a leak
// and is named ([Leaks]) by class, stage, label and age.
//
// A [Timeline] is a bounded ring of counts as they changed, of this process or of others by their reports. It is
// written as JSON lines ([WritePoints]) and drawn as SVG ([Draw]).
//
// A nil [Recorder] and a nil [Buffer] do nothing, so that code which proves without a rack needs no recorder. Limits:
// counts are of one process; a segment that two processes map is a piece in each. What a class has is what the code
// says that it takes, not what is resident; what is resident beyond that is [Report.BeyondBytes]. Two roles in one
// process have a recorder each and the resident memory in common.
package flight
