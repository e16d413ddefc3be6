//go:build long

package agent_test

import (
	"testing"
	"time"
)

// TestLongKillsKeepTheBookRight is TestKillsKeepTheBookRight for a minute.
func TestLongKillsKeepTheBookRight(t *testing.T) { killAndCheck(t, time.Minute) }
