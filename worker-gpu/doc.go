// Package workergpu is the GPU worker: it proves the sealed segments of its host on the host's devices, or on its
// processor. Run is the whole program; cmd/worker-gpu and the program that runs all roles call it. Engine is the
// whole of an engine process: whoever calls Run must call Engine when it is started with the argument "engine".
//
// It owns no truth: what it works on is in the host's book (shared/agent) and in the segments, and who may prove it
// says the fence in the job's record. See internal/prove for the way of one attempt, internal/engine for engines.
package workergpu
