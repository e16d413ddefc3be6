// Package keyring makes what a rack's parts prove who they are with, in one folder:
//
//	nats/    operator, account and signing seeds (secret), their tokens, and auth.conf, which the servers include
//	creds/   one credentials file per node, coordinator, tenant and operator
//	tls/     the rack's authority (its key is secret), one certificate each for NATS and Redis servers
//	redis/   users.acl for the server, passwords of the ledger and of operators
//
// It owns the permissions: which subjects each kind of user may publish and subscribe to (permissions.go). They
// stand in the user's own token, signed by the account's key, so that a node or tenant is added without a word
// to the servers and without touching anybody else's file. Taking a credential back changes the account's token
// in auth.conf, which the servers then reload.
//
// Limits: names are those of package job. Nothing is overwritten: what is there is kept or refused. Certificates end
// after CertificateYears. It does not copy files to hosts and keeps no secret outside the folder.
package keyring
