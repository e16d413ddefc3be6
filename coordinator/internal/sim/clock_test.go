package sim_test

import (
	"testing"
	"time"
)

// clock is a machine's: what its processes read, beside the true time. Timers and measured times are true on every
// machine, as they are with the monotonic clock of a real one.
type clock struct {
	offset int64 // nanoseconds; it is what goroutines have
	w      *world
	who    string
	line   *line // of the process that has it now, if that can be stopped
}

// held returns when the process that has the clock is not stopped. Timers that call a function wait for it.
func (c *clock) held() {
	if c.line != nil {
		c.line.hold()
	}
}

func (w *world) newClock(who string) *clock {
	c := &clock{w: w, who: who}
	if !w.peace {
		c.jump(newDice(w.seed, "clock "+who))
	}
	return c
}

// jump sets the clock anew: mostly near the truth, now and then far from it.
func (c *clock) jump(d *dice) {
	wrong := []time.Duration{0, 50 * time.Millisecond, 3 * time.Second, time.Minute, 12 * time.Hour}[d.pick(5)]
	offset := int64(wrong)
	if d.chance(0.5) {
		offset = -offset
	}
	c.offset = offset
}

// use has the goroutine that calls it, and all that it starts, read this clock. Only an exact build can; false: this
// one cannot.
func (c *clock) use() bool { return useClock(&c.offset) }

// now is what it shows, without the part that only measures.
func (c *clock) now() time.Time {
	return c.w.began.Add(time.Since(c.w.began)).Round(0).Add(time.Duration(c.offset))
}

// useClock is the place where exact builds put their own.
func useClock(*int64) bool { return false }

// checkClocks looks whether machines have clocks of their own in a build that is to be exact.
func checkClocks(t *testing.T, exact bool) {
	began, wrong := time.Now(), clock{offset: int64(-time.Hour)}
	wall, since := make(chan time.Time, 2), make(chan time.Duration, 2)
	look := func() { wall <- time.Now().Round(0); since <- time.Since(began) }
	var works bool
	go func() {
		works = wrong.use()
		go look()
		time.AfterFunc(time.Minute, func() { wrong.held(); look() })
	}()
	for _, passed := range []time.Duration{0, time.Minute} {
		shown, want := (<-wall).Sub(began.Round(0)), passed
		if exact {
			want -= time.Hour
		}
		if got := <-since; works != exact || shown != want || got != passed {
			t.Fatalf("exact %v: after %s a clock that is an hour late shows %s, and measures %s", exact, passed, shown, got)
		}
	}
}
