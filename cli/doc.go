// Proofrack proves Filecoin's second commit phase: a Commit-Phase-1 output goes in, verified proof bytes come out. This
// package only hands the process's arguments and streams to package verb, which owns the commands.
package main
