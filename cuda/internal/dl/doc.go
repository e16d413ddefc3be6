// Package dl loads a shared library at run time. It is the only place that knows how; without cgo no library loads.
//
// A library stays loaded until the process ends: what it started (threads, a driver) cannot be taken back safely.
package dl
