// Package residency keeps what proofs of a circuit are made with: the mapped parameters and the artifact. Each circuit
// is loaded once, however many ask at the same time; what is in use is never given back, what is idle is when asked.
//
//	absent ─Acquire─► loading ─► resident (referenced) ─release─► resident (idle) ─Evict─► absent
//	                     └─ error: absent again, the next Acquire tries anew
//
// It owns the mappings of this process. It does not decide what to evict, and it counts no other process's memory.
package residency
