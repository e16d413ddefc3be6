// Package attempt is the loop that both kinds of workers run: fetch a task, claim it, work while showing progress,
// settle the one outcome, acknowledge. What the work is, the role says.
//
//	Fetch ─► decode ─► known? ─► fence ─► Work ──────────► settled ─► acknowledged
//	            │         │        │        │ error: Judge ─► Result (failed, handed back)
//	            │         │        └ stale: acknowledged, nothing published
//	            │         └ running or settled here: the delivery joins that run, nothing is done twice
//	            └ not a task: terminated, its bytes go to the dead letters; it is never tried again
//
// A delivery is not ownership: the fence in the job's record is, and it is compared before the work starts and
// wherever the role asks. When the record cannot be asked, a running attempt goes on with the fence it knows; one
// that has not begun waits.
//
// While work runs, the delivery is kept by in-progress marks, sent only when the run's progress counter advanced. A
// run whose counter stands still for Config.StallMax is given up. Outcomes and acknowledgements that cannot be sent
// are kept and sent when the bus is back; their message ids make that harmless. An outcome is also a file until the
// stream has it, so the next process sends it when this one ends first.
//
// A worker that dies at work leaves a mark ([Marks]): the second death at one attempt makes it lost. Deliveries are not
// counted: messages also come again after restarts in good order, outages and lost acknowledgements.
// What a dead worker left with its segment sealed goes on at once (Source.Left); its message joins when it comes again.
//
// [Judge] holds the one switch over fault.Kind that decides what becomes of an attempt. The package owns the truth
// about what this process works on (the Board), nothing else; it never touches the ledger or a record.
//
// Limits: Config.Slots runs at once; as many outcomes kept as there are slots; the last [settledMax] attempts
// remembered.
package attempt
