// Command probe asks a program's /readyz, /livez or another health address and exits 0 if it answers 200: health checks
// of images that have no shell.
//
// It follows what http.Get follows, waits three seconds at most and judges nothing but the status. Exit codes: 0, 1 (no
// answer, or another status), 2 (wrong arguments).
package main
