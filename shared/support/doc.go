// Package support is what a program can tell about itself to somebody who helps: its build, its settings without
// secrets, the last lines of its log, its metrics. A Record collects it while the program runs and owns the lines,
// which nobody else keeps; Pack makes a message of it, which proofrack support-bundle puts into an archive.
//
//	log ─► Record (the last LogBytesMax) ─ asked ─► Report ─ Pack (at most PackedBytesMax) ─► bundle
//
// Scrub takes out of a text what looks like a secret: private keys, seeds of credentials, passwords in URLs and in
// fields. It is applied to everything that leaves the process; settings hold no secrets in the first place, only the
// names of files.
package support
