package store

import (
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
)

// All disks of the store are lost while the watch is behind what was written last: the record goes all the same.
func TestARecordLostWithItsDiskGoesAtWhateverRevision(t *testing.T) {
	t.Parallel()
	const id = job.ID("01890a5d-ac96-774b-bcce-b302099a8057")
	v := newView()
	v.put(Job{Record: &job.Record{ID: id, State: job.Active}, Revision: 12})
	v.drop(id, 9, true, time.Now())
	if _, ok := v.get(id); !ok {
		t.Error("retention of an older record took the later one")
	}
	v = newView()
	v.put(Job{Record: &job.Record{ID: id, State: job.Active}, Revision: 12})
	v.drop(id, 9, false, time.Now())
	if _, ok := v.get(id); ok {
		t.Error("the record is still there")
	}
	if len(v.live) != 0 || len(v.order) != 0 || v.counts[job.Active] != 0 || v.lost[id].IsZero() {
		t.Errorf("left: %v, %v, %v, lost %v", v.live, v.order, v.counts, v.lost)
	}
}

// After such a loss revisions begin anew, and what operators decide then counts.
func TestMarksAfterALostDiskCount(t *testing.T) {
	t.Parallel()
	var f flags
	for _, e := range []bus.Entry{
		{Key: nodePrefix + "n1", Value: []byte(`{"cordoned":true}`), Revision: 50},
		{Key: intakeKey, Value: []byte(`{"paused":true}`), Revision: 51},
		{Key: nodePrefix + "n1", Revision: 50, Deleted: true},
		{Key: intakeKey, Revision: 51, Deleted: true},
	} {
		f.see(e)
	}
	if !f.marks["n1"].empty() || f.intake.Paused {
		t.Errorf("lost marks are still there: %+v, %+v", f.marks, f.intake)
	}
	f.see(bus.Entry{Key: nodePrefix + "n1", Value: []byte(`{"draining":true}`), Revision: 2})
	f.see(bus.Entry{Key: intakeKey, Value: []byte(`{"paused":true}`), Revision: 3})
	if !f.marks["n1"].Draining || !f.intake.Paused {
		t.Errorf("new marks are ignored: %+v, %+v", f.marks, f.intake)
	}
	f.see(bus.Entry{Key: nodePrefix + "n1", Revision: 9, Deleted: true}) // a deletion by somebody
	f.see(bus.Entry{Key: nodePrefix + "n1", Value: []byte(`{"draining":true}`), Revision: 2})
	if f.marks["n1"].Draining {
		t.Error("an older mark came back after its deletion")
	}
}
