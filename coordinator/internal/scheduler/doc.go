// Package scheduler decides which waiting partition goes to which node and device, and when. It is a pure core on one
// thread: events go in, decisions come out. It has no clock (the time comes with each event), no I/O and no logger; the
// same events give the same decisions.
//
// It owns one truth, the order of waiting (design section 2, "who owns which truth"): priority first, then age, and
// slack where a deadline is near. All else that it knows is a copy, rebuilt from events after every take-over: jobs
// from the records, holdings from the ledger, nodes from beats.
//
//	          Admit                    Granted                 Ended, or the record waits again
//	waiting ─────────► asked ─────────────────────► running ────────────────────────────────────► gone, or waiting
//	   ▲                 │ Refused                     bytes stay booked until Freed: then Transfer or Release
//	   └─────────────────┘
//	   ▲  NotBefore
//	pausing
//
// How it decides:
//
//   - Each device gets at least [Config.WorkAhead] of booked work, [Config.SealedAhead] of it sealed, from durations
//     measured per circuit and device. Memory, [Config.DevicePartitionsMax] and the synthesis slots cap it.
//   - A waiter that fits nowhere lets those behind it pass. When it has been passed over for [Config.Ageing] it pins
//     the node it could run on soonest: there nobody behind it is admitted, except where its bytes stay free all the
//     same.
//   - A job whose deadline leaves little slack (time left less what is left to do) goes before older ones of its
//     priority, by up to [Config.Patience].
//   - A tenant with a quota gets no more than that in flight. Within the quota the same holds as on a node: a waiter
//     that it held back for [Config.Ageing] is left what it needs by those of the tenant behind it.
//   - Of the devices that could take a partition the one that could start it soonest gets it; loading assets counts as
//     time, so warm nodes are preferred until they have enough to do. Equal ones are told apart by their free bytes.
//   - What attempts were measured to take is remembered by circuit, kind of device and pool. Where that is more than
//     the workers say, it is booked with [Config.PeakMargin]; where it is off by more than [Config.DriftMax] that is
//     told.
//   - A job's last partition waits for a fast device that is about to be free, rather than to go to a slow one.
//   - A partition that failed on a device, or was lost with a node, goes elsewhere while there is an elsewhere.
//   - Freed bytes of an ended attempt are handed to the next partition with the same needs in one step (Admit.From), or
//     released.
//
// Limits: waiters are indexed by circuit, by tenants that have quotas and by what they avoid, so a decision costs the
// number of such groups times the devices of the nodes that changed, not the number of waiters (0.15 ms at the 99th
// percentile with 100,000 waiting partitions on 64 nodes of 8 devices, one group a circuit). At most
// [Config.AdmitsMax] partitions are admitted per event; the outcomes of these carry on. [Core.Why], [Core.Left] and
// [Core.Stats] cost more: they look at all jobs that wait.
//
// Every wait has a reason (invariant 8). What keeps a whole node from work is told before what its devices lack, which
// often only follows from it, and in the worker's own words; after that come size, bytes with their holders, and order.
//
// It does not book: the ledger does and may refuse, and the node has a veto after that. It does not find out why a node
// is not ready: the node says so.
package scheduler
