// Package sealtest checks Commit-Phase-1 outputs in tests, relation by relation and as naively as the specification
// states them (spec/c2-circuit.md 4, 5; spec/c2-formats.md 1.6, 2.2). It shares no code with the check that runs before
// proving, so that the two can be held against each other.
package sealtest
