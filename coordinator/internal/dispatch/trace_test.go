package dispatch

import (
	"testing"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
)

// The waits of a partition follow each other without gaps, from when it could go until its reservation is begun, also
// where clocks and turns do not agree.
func TestWaitsFollowEachOtherWithoutGaps(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	began := since.Add(10 * time.Second)
	at := func(seconds int, code scheduler.Code) scheduler.HeldSince {
		return scheduler.HeldSince{Hold: scheduler.Hold{Code: code}, Since: since.Add(time.Duration(seconds) * time.Second)}
	}
	memory := at(3, scheduler.Memory)
	memory.Pool = "vram:gpu0"
	for name, c := range map[string]struct {
		turns []scheduler.HeldSince
		want  map[string]int // seconds
	}{
		"one": {nil, map[string]int{"wait for turn": 10}},
		"three": {
			[]scheduler.HeldSince{at(0, scheduler.Slots), memory, at(7, scheduler.Turn)},
			map[string]int{"wait for slots": 3, "wait for vram": 4, "wait for turn": 3},
		},
		"one before it can": {
			[]scheduler.HeldSince{at(-5, scheduler.Slots), at(-1, scheduler.Turn)}, map[string]int{"wait for turn": 10},
		},
		"one after": {
			[]scheduler.HeldSince{at(0, scheduler.Slots), at(12, scheduler.Turn)},
			map[string]int{"wait for slots": 10, "wait for turn": 0},
		},
	} {
		spans := waitSpans(&scheduler.Admit{Held: scheduler.Hold{Code: scheduler.Turn}, Turns: c.turns}, since, began)
		from := since
		for _, s := range spans {
			if !s.Start.Equal(from) || int(s.End.Sub(s.Start).Seconds()) != c.want[s.Name] {
				t.Errorf("%s: %s from %s to %s", name, s.Name, s.Start.Sub(since), s.End.Sub(since))
			}
			from = s.End
		}
		if len(spans) != len(c.want) || !from.Equal(began) {
			t.Errorf("%s: %d spans until %s", name, len(spans), from.Sub(since))
		}
	}
}
