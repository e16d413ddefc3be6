//go:build long

package coordinator_test

import "testing"

// B98 in full: 300 jobs and 20 restarts.
func TestLongB98SeriesStayTheSame(t *testing.T) { seriesStayTheSame(t, 20, 15) }
