// Package bustest is the conformance suite of the bus: what package bus promises, as tests that every adapter must
// pass. Each test works in streams, buckets and subjects of its own, so all may share one server and run side by side.
//
// It owns no state. What only one adapter can do (restarts, wrong credentials, sweeps of broken uploads) is tested
// there.
package bustest
