// Package service solves once how a process starts, is watched and ends.
//
// A Group runs named services: it starts them in order, each when the one before it is ready, and stops them in
// reverse. How it is to end reaches every service through its Control, in three levels that only rise:
//
//	running --Drain--> draining --HandBack--> handing back --Kill--> killed
//
//	Drain     first SIGTERM or SIGINT, or an order over the bus: take no new work, finish what runs, return
//	HandBack  second SIGTERM, SIGUSR1 (the host is reclaimed), drain time over, or a service failed: return running work
//	Kill      third SIGTERM or hand-back time over: contexts end; who has not returned shortly after is left behind
//
// Drain and HandBack reach services one after the other, last started first, for an earlier one may be what a later one
// needs to finish; Kill reaches all at once. A service that ends unasked, with or without an error, takes the group
// down at level HandBack. A panic is not recovered anywhere: it ends the process with its value, as a broken invariant
// should.
//
// Groups nest: the context of a service carries its Control, and a Group that runs under such a context obeys it. So a
// role's Run(ctx, Config) works alike below Notify (a program of its own) and as a service among others (all roles in
// one process).
//
// Health is the registry of named checks behind /livez and /readyz; Retry is the one loop that tries again. Neither
// waits without a bound: Health for a check that hangs, Retry for longer than its Config says.
//
// The package does not restart services, write PID files or daemonize: that is the init system's.
package service
