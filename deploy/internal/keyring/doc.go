// Package keyring makes what a rack's parts prove who they are with, in one folder:
//
//	nats/    operator and account seeds (secret), tokens, also of users' accounts, and auth.conf, which servers include
//	creds/   one credentials file per node, coordinator, tenant and operator
//	tls/     the rack's authority (its key is secret), one certificate each for NATS and Redis servers
//	redis/   users.acl for the server, passwords of the ledger and of operators
//
// It owns the rights: which subjects each kind of user may publish and subscribe to (permissions.go). They stand in the
// user's own token as permissions and in the token of an account of its own as imports from the rack's account, where
// only coordinators are. So a node or tenant is added without touching anybody else's file; auth.conf, which lists the
// accounts, is written again, as when a credential is taken back, and the servers then reload it.
//
// Limits: names are those of package job. Nothing is overwritten: what is there is kept or refused. Certificates end
// after CertificateYears. It does not copy files to hosts and keeps no secret outside the folder.
package keyring
