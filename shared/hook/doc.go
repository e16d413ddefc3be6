// Package hook gives tests named points in a process at which it kills itself, pauses or leaves a mark (hooks H7 and H8
// of the field reports). It owns no truth; it is off unless the configuration's test section names points.
//
//	kill@handoff.before-seal#2     SIGKILL itself the second time it comes by
//	pause@handoff.before-map       wait, the first time, until somebody removes the hold file
//	mark@synth.after-publish       only leave the mark
//	leak@flight.assignment         the first buffer of that class is never counted as gone (package flight)
//
// Each entry fires once per folder, whichever process gets there first and however often processes restart: firing
// creates <folder>/<point>#<n>.reached with O_EXCL, and whoever finds that file goes on. The file holds the process
// number, so a test can prove that the point was reached and by whom. A pause first creates <point>#<n>.hold and ends
// when that file is gone, when its context ends, or after [PauseMax].
//
// A nil [Points] does nothing and costs nothing. Limits: at most [EntriesMax] entries.
package hook
