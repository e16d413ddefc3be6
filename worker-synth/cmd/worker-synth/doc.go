// Command worker-synth is the synthesis worker (package workersynth).
package main
