//go:build long

package redisledger_test

import (
	"testing"
	"time"
)

// TestLongLedgerIsLinearizable is TestLedgerIsLinearizable for two minutes.
func TestLongLedgerIsLinearizable(t *testing.T) { checkLinear(t, 2*time.Minute) }
