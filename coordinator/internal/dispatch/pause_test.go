package dispatch

import (
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/job"
)

// A pause ends when its time has passed, though the clock be set back meanwhile: the times that the scheduler gets
// measure, beside what they show.
func TestAPauseOutlastsNoClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	l := &Leader{cfg: DefaultConfig()}
	at := time.Now().Add(time.Second).UTC()
	r := &job.Record{Partitions: []job.Partition{{Stage: job.Waiting, StageAt: time.Now().UTC(), NotBefore: &at}, {}}}
	v := l.viewOf(r)
	for what, got := range map[string]time.Time{"not before": v.Partitions[0].NotBefore, "at": v.Partitions[0].StageAt} {
		if !strings.Contains(got.String(), " m=") || got.Sub(at).Abs() > time.Minute {
			t.Errorf("%s: %s", what, got)
		}
	}
	if !v.Partitions[1].NotBefore.IsZero() {
		t.Errorf("a pause that nobody asked for: %s", v.Partitions[1].NotBefore)
	}
}
