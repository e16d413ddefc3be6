// Package deploy is a folder, not code: what it takes to put a rack onto machines (docs/deploy.md, docs/security.md).
//
//	keys.sh, rackkeys, internal/keyring    keys, certificates, permissions
//	nats, redis                            configurations of the servers
//	systemd, docker, ../docker-compose.yml programs and their limits
//	examples                               an annotated settings file per role, generated
//
// Its tests start the real servers with these files and attack them, parse the compose file with the library of
// compose itself, and hold ports, sizes and times against what the programs have. What they cannot try here: real
// containers, real systemd, hugepages.
package deploy
