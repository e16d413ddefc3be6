package dispatch

import (
	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
)

// sizeDrifted tells that measured sizes begin or cease to be off from what workers compute.
func (l *Leader) sizeDrifted(d *scheduler.Drifted) {
	l.log.Warn().Str("circuit", d.Circuit).Str("stage", string(d.Stage)).Str("kind", d.Kind).Str("pool", string(d.Pool)).
		Stringer("computed", d.Computed).Stringer("p99", d.P99).Stringer("booked", d.Booked).
		Bool("over", d.Over).Bool("under", d.Under).Msg("what attempts take drifts from what workers compute")
}
