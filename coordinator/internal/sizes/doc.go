// Package sizes keeps what was learned of attempts by measuring them: how much memory a circuit takes at each stage on
// devices of a kind, beside what workers computed for it, and how long each device takes.
//
// It is pure: times and measurements come in by calls, nothing is read here. The scheduler has one table and books by
// it; the leader stores it, so that the next reign goes on with it.
//
//	worker's beat: computed ─┐
//	                         ├─► Observe ─► p99 of the latest peaks, a margin on top ─► Surplus ─► booked
//	attempt's end: peak ─────┘                        │
//	operator: Pin ────────────────────────────────────┴─► off by more than DriftMax: told, once
//
// # Life of a row
//
//	        Observe              5th peak                      p99 > computed
//	(none) ────────► few peaks ──────────► as computed ◄────────────────────────► raised
//	                 as computed                └──── another computed size: few peaks again
//
// A size is never booked below what workers computed by itself, however little was measured: that takes an operator's
// pin. A pin holds until it is taken away, whatever is measured; drift from it is told all the same.
//
// Limits: [RowsMax] sizes and [SpeedsMax] speeds, the one not measured for longest goes first and pinned ones stay;
// [SamplesMax] peaks of each size. It owns no truth: computed sizes are the workers', and all here can be lost at the
// price of learning it again.
package sizes
