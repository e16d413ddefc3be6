//go:build huge

package main

import "testing"

// TestHugeScripts runs testdata/huge/*.txtar, which take hours, 60 GB of disk and 18 GiB of memory. $SCRATCH is
// PROOFRACK_SCRATCH, where parameters are kept from one run to the next.
func TestHugeScripts(t *testing.T) { runScripts(t, "testdata/huge") }
