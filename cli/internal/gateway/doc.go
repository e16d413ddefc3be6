// Package gateway is the door for software that speaks the gRPC protocol cuzk.v1 (package cuzkv1): it looks like one
// proving daemon, and the rack proves (docs/gateway.md).
//
//	client ── gRPC, unix socket or loopback ──> gateway ── NATS, a tenant's credential ──> coordinators
//	                                               └────── gRPC, kinds that are not PoRep ──> upstream
//
// It owns no truth and keeps nothing on disk. A job's id is the rack's own, so any gateway of the tenant can wait for
// it, a restarted one too; the id of a forwarded job is the upstream's behind "upstream-". What it does keep in memory
// is submissions on their way:
//
//	unread ──turn──> read, checked ──> submission (one per key) ──> accepted: the rack's
//	                                     └─ rack away or full: held, tried again ── hold_max ──> refused
//
// The key under which the rack knows a job is the client's request_id and the hash of the parsed input, so a request
// that is sent again gets its job or its result, and the same request_id with another input gets another job. Keys of
// failed and cancelled jobs are free again. A submission belongs to the gateway and not to the call, so that it goes on
// when its client gives up.
//
// Limits: messages of up to 256 MiB; inputs in memory by kind (lanes: kinds never wait for each other); streams per
// connection and connections. What it does not do: encryption and names of clients. Whoever can open the socket can
// submit for the tenant.
package gateway
