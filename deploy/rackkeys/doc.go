// Command rackkeys makes the keys, certificates and permissions of a rack; deploy/keys.sh runs it.
//
// It reads arguments, calls package keyring, and prints which settings use what was made. Exit codes: 0, 1 (failed), 2
// (wrong arguments). It keeps nothing and talks to no server.
package main
