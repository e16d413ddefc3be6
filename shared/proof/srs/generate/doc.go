// Package generate makes development parameters of a circuit: a `.params` and a `.vk` file as bellperson's generator
// writes them (spec c2-formats.md 3.9), from five scalars. Whoever knows the scalars can forge proofs, so the files are
// for tests, benchmarks and demonstrations; they are listed as development in the parameters.json beside them.
//
// # Method
//
// One pass over the circuit's rows evaluates the columns of the constraint system at tau: row k adds its coefficients
// times L_k(tau) to u, v and w of its variables. L_k(tau) = w^k (tau^m - 1)/(m (tau - w^k)) is produced in the order of
// the rows with one inversion for 1024 of them, so no vector of length m exists. Sections of the circuit are walked at
// the same time; each worker has its own sums for the inputs and the shared auxiliaries, while the sums of all other
// auxiliaries belong to one section.
//
// Then the scalars are multiplied to the generators with fixed-base tables (package msm) in chunks, encoded and written
// in the order of the file.
//
// # Memory
//
// Two field elements for each auxiliary (l and u) and one for each that occurs in B, beside three for each auxiliary of
// the sections being walked: 10 GB for the 32 GiB circuit. These vectors are mapped outside the Go heap, so that the
// garbage of a walk does not double them; l and u are given back as soon as they are written.
//
// # Files
//
// Files are written under temporary names, synced, and then take their own names; an error leaves nothing behind.
// Existing files are not touched unless Options.Replace is set, and published ones never are.
package generate
