// Package api answers requests on the bus: clients' (submit, status, jobs, cancel, why) and operators'. Bodies are
// package wire's; every answer begins with wire.Reply, so the plain nats tool shows what is wrong, too.
//
// Every instance serves what it can answer from the records that it holds ([Instance]: submit, status, jobs, audit);
// one of them gets each request. Only the leader serves what changes jobs or looks into its books ([Leading]: cancel,
// why, nodes, drain, ledger, intake, dead letters). While there is no leader these have no responders, and clients ask
// again.
//
// The tenant is the subject's last word, which credentials pin; another tenant's job is answered like one that does not
// exist. It owns no truth.
package api
