// Package plan tells what a rack would do with a load before anybody buys it: proofs per hour, peak bytes of each pool,
// idle devices, waiting, the bottleneck, what one more node brings, and what a proof costs. It runs the real scheduler
// (coordinator/internal/scheduler) in simulated time: stage times and sizes come from a [Profile], machines from a
// [Rack], jobs from a [Load]. It owns no truth of a rack; it answers a question and forgets it.
//
// An attempt goes the way that it goes on a rack, by the same decisions; its bytes are booked from admission until they
// are gone:
//
//	waiting ─Admit─► reserved ─slot─► synthesizing ─► sealed ─feeder─► proving ─► finishing ─► ended ─► gone
//
// A node has synthesis slots. Syntheses slow each other down by the profile's curve, and by cores when together they
// want more of them than there are: each of k at once makes 1/seconds(k) of its work per second.
//
// A device proves one partition at a time; its feeders may hold more, prepared. Finishing is on the CPU and leaves the
// device free. Bytes are held by stage; booked is what the whole path needs at most, as the ledger books it.
//
// Assets (parameters, artifacts) are loaded on demand at the node's rate, or are there from the start (Policy.Warm).
//
// Two policies: "rack" is this project's scheduler with its settings. "box" is a prover per box with a fixed number of
// workers and nobody counting bytes, all partitions of a sector on the box that the client gave it to; it is the same
// scheduler with one book per box, no look ahead, and a permit either held until a feeder takes the partition or given
// back once it is synthesized. A box that holds more than it has is killed, and the run ends there ([Killed]).
//
// The same inputs give the same result, byte by byte: events are ordered by time and then by age, the clock is
// simulated, nothing is drawn at random and nothing sleeps.
//
// Limits: the constants named …Max in limits.go; every input is checked against them. What it leaves out: failures,
// verification by the leader and assembly (milliseconds), messages between machines (idem), transfer of inputs, power
// of machines that are switched on and off. A time that the profile does not make depend on load does not depend on it.
package plan
