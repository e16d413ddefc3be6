// Package host is what both worker programs stand on: bus, spill folders, the node's book and its agent, opened in the
// right order, run and ended together.
//
//	Open: spill ─► book ─► bus (waited for) ─► records ─► Run: beats, orders, the role's work ─► outbox empty
//
// It also keeps the node's list of devices, files in the spill folder that GPU workers write and every worker reads:
// which NUMA node a device is next to, and how much memory it has. So a synthesis worker that speaks for the host
// knows the capacity of devices it does not drive. A list whose worker has died stays until that device is listed
// anew.
package host
