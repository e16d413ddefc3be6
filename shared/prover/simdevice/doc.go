// Package simdevice wraps a real device in one that has faults on order (hooks H1 to H6 of the field reports): a
// memory of a given size, leaks, failures of the n-th job, loss at a given time, flipped bits, and a fixed time per
// proof for benchmarks. It is off unless the configuration's test section asks for it; proofs are the inner device's,
// so they verify unless a bit was flipped.
//
//	failures: how@stage#n    how:   oom, error, panic, loop, freeze, kill, abort, segv, bus
//	          oom@start#1    stage: start, finish
//	          kill@finish#3+ n-th job of the device, "+" that one and all later ones
//
// It owns no truth beyond its counters, which begin where Config.JobsBefore says: engines restart, devices do not.
package simdevice
