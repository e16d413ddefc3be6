// Package srs reads and checks Groth16 parameter files: `.params` (proving) and `.vk` (verifying), byte-compatible with
// the ones bellperson writes (spec c2-formats.md 3.2 to 3.4). Subpackage generate makes development parameters.
//
// # What is trusted
//
// A parameter file is trusted for its digest (spec c2-circuit.md 7.3: the first 16 bytes of BLAKE2b-512, in hex). The
// digest has to be listed for the file's name either in the published manifest, which is embedded, or in a
// parameters.json beside the file that marks its entry as development. Everything else is refused. What came from a
// development entry says so (Params.Development), because proofs under it are worth nothing to others.
//
// Before the digest come the checks that cost nothing: the head is the verifying key and is checked fully (curve,
// subgroup, no identity), the five counts fit together, the file has exactly the length they ask for, they are the
// circuit's counts, and a sample of the points of every section is checked fully. A Refusal names the file, what
// differs, what was expected and found, both digests, and what to do.
//
// # Memory
//
// A `.params` file is mapped, read-only and shared, and never copied to the heap as a whole: Params hands out sections
// of the mapping. Whoever streams a section gives its pages back with Section.Release, so that 44 GiB do not count as
// resident. A file that somebody cuts short while it is mapped makes the process fail with SIGBUS; parameter files are
// replaced by renaming, never rewritten in place.
//
// An image (Params.WriteImage, OpenImage) has the same points decoded, in the memory layout of the build, in a file
// that the caller made and seals. Whoever maps it reads no parameter file and decodes nothing. It takes as much memory
// as the parameter file is long, and that memory cannot be given back in parts.
//
// # Digests are remembered
//
// Hashing 44 GiB takes a minute or more, so the digest of a file of at least 64 MiB is remembered by resolved path,
// device, inode, size, modification and change time in a small file (Options.DigestCache). Smaller files are hashed
// each time: they are quick, and a file rewritten within one tick of the file system's clock cannot slip through. A
// cache that cannot be read counts as empty and one that cannot be written is a warning, never an error.
//
// The package logs nothing and reads no clock. Linux only.
package srs
