// Package membus is the bus within this process: the same promises as natsbus, without a server. It owns its streams
// and buckets; they end with the Server.
//
// Two ways to run it. By default it behaves like the real thing: time passes, handlers and watches have goroutines of
// their own. With Config.Clock set nothing in it waits or starts a goroutine: everything that happens later is given to
// the clock, in order, and a queue is read with TryFetch. A simulation that runs its clock on one thread then gets the
// same run from the same seed.
//
// Config.Fault may spoil any call: refuse it, lose it, do it and lose the answer, do it twice, or later. Server.Cut
// takes the server away until Heal.
//
// What it does not do: store on disk, check credentials, or bound its memory beyond the limits of the topology.
package membus
