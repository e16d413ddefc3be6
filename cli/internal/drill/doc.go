// Package drill is the fire drill of a rack: it brings faults about while jobs run, then looks whether what design.md
// section 6 promises was kept, and says so with evidence.
//
//	jobs are submitted ─► one is in the stage that the fault is about ─► do ─► hold ─► undo ─► jobs end ─► rack is quiet
//
// It owns which faults there are and what must hold after each ([Faults], [Verdict]). How a fault is brought about is
// the operator's word ([Commands]) or, for a rack in one process, known ([Up]): a drill reaches what it was given the
// means to reach and nothing else.
//
// What it sees, it sees from outside: records, books, nodes and dead letters as any operator can ask for them, several
// times a second all the while. Checked are invariants 1 (no pool of a book over its capacity), 2 (no booking of its
// jobs left), 3 (each job ends, in a proof), 4 (proofs verify, when it can tell) and 6 (what was finished is not
// begun again). It submits jobs of its own under keys of its own and leaves other jobs alone; faults do not.
package drill
