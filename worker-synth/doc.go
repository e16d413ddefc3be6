// Package workersynth is the synthesis worker: it turns slices of checked inputs into sealed segments for the devices
// of its host. Run is the whole program; cmd/worker-synth and the program that runs all roles call it.
//
// It owns no truth: what it works on is in the host's book (shared/agent), what it made is in the segment, and who may
// make it says the fence in the job's record. See internal/synth for the way of one attempt.
package workersynth
