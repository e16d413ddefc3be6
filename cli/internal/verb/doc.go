// Package verb holds the commands of the proofrack program, one file per verb.
//
// A verb reads its arguments, calls the library packages, and gives a result that is printed for people or, with
// --json, as one JSON object on standard output. Everything else goes to standard error: warnings, progress bars (only
// on a terminal), and in the end one line for an error, which names the problem and, where there is one, the remedy.
//
// # Files
//
// A path "-" is standard input or standard output. Files are written under another name in the same folder and renamed
// when they are complete, so a failed or interrupted verb leaves nothing under the name that was asked for.
//
// # Exit codes
//
//	0    done
//	1    a fault of the program or the machine
//	2    wrong usage: flags or arguments, or an input that is missing, a folder, empty or unreadable
//	3    bad input: a C1 output, sector description, proof or slice that is refused
//	4    the proof does not verify
//	5    parameters are missing
//	6    parameters are wrong: truncated, corrupt, of another circuit, or not those that are published
//	7    out of room: disk or memory
//	8    the job failed or was cancelled
//	9    not ready: the rack, a job's proof, or what doctor found must be fixed
//	10   time is up; the job goes on
//	11   the rack does not answer
//	130  interrupted
package verb
