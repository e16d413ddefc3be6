// Package assemble decides whether proofs hold: a partition's before it counts, a whole job's before it leaves the
// system (invariant 4). It verifies under the `.vk` file of the circuit in the parameter folder, against the public
// inputs that were stored when the job was accepted.
//
// It owns no truth: key files do (their digests are checked when they are opened), and c2-slices. What it keeps in
// memory are opened keys and the inputs of the jobs verified last, both bounded. It changes no record.
//
// Faults: a proof that does not hold is fault.Device, a key that cannot be opened fault.Transient (it may come), inputs
// that are gone fault.NotFound and other ones than were stored fault.Corrupt.
package assemble
