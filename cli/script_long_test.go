//go:build long

package main

import "testing"

// TestLongScripts runs testdata/long/*.txtar, which take minutes and gigabytes of disk.
func TestLongScripts(t *testing.T) { runScripts(t, "testdata/long") }
