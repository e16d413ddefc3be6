// Package inventory reads what a host has and what of it this process may use: memory, processors, NUMA nodes, folders,
// processes, the boot it lives in.
//
// Files of the kernel are read below a Host's file system, so tests feed made-up ones; only folders are asked about by
// system calls. Nothing is cached and nothing is kept: a Host is a pair of eyes, the books are the agent's and the
// ledger's.
//
//	memory      least of MemTotal and the limits of this process's cgroup and all those above it, in both layouts, minus
//	            a margin; "max" and the huge numbers of the first layout are no limits
//	processors  least of the affinity mask and the quota of the cgroup and all those above it, at least 1
//	NUMA        nodes with their processors and memory; a host without the files is one node
//	folders     size and free bytes, page size, mount, owner and mode, and whether this process can create files
//	processes   alive or not by PID and start time, resident bytes
//
// Limits: a file is read up to FileBytesMax. Process numbers are those of the own PID namespace; whether a process of
// another container lives is told by locks, not here. The limits are read anew at each call, for they can change.
//
// GPUs are in package gpu below, for only who drives them links the library.
package inventory
