// Package top shows a rack full-screen in a terminal, as it changes: nodes with their pools as bars, devices, jobs,
// why one waits, and the large buffers. Where there is no terminal it writes a line for each change.
//
// It owns no truth. Everything it shows is what the rack answered last; each kind of request (nodes, jobs, buffers, one
// job, why one waits) is made once a second, and never while the one before is under way. When nobody answers, the last
// answer stays with its time, and what is wrong stands below the title.
//
//	overview ── enter ──> job ── esc ──> overview
//	   │  c, d: a question; y does it, everything else doesn't
//	   └─ /: the filter; ?: the keys
//
// Everything from outside is shown as printable text of known width: control characters, marks that combine, and what
// changes the direction of text become "?". No line is wider than the screen.
//
// Limits: the newest JobsMax jobs; screens of at least ColumnsMin columns. It does not page through older jobs and
// keeps no history.
package top
