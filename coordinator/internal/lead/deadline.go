package lead

import (
	"errors"
	"sync"
	"time"
)

// errExpired says that the lead was not renewed for a lease.
var errExpired = errors.New("lead not renewed")

// deadline ends a reign when its lease is over. When it runs late by more than a margin this host stood still, and so
// did whatever the leader does: then it asks for a last try instead. Whether somebody else has taken the lead meanwhile
// the key alone can tell.
type deadline struct {
	margin time.Duration
	end    func()
	// late gets by how much the deadline was missed.
	late chan time.Duration

	mu      sync.Mutex
	at      time.Time
	timer   *time.Timer
	stopped bool
}

func newDeadline(at time.Time, margin time.Duration, end func()) *deadline {
	d := &deadline{margin: margin, end: end, late: make(chan time.Duration, 1), at: at}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = time.AfterFunc(time.Until(at), d.over)
	return d
}

// over runs when the timer has fired.
func (d *deadline) over() {
	d.mu.Lock()
	defer d.mu.Unlock()
	late := time.Since(d.at)
	switch {
	case d.stopped, late < 0: // it was set anew at the last moment
	case late <= d.margin:
		d.end()
	default:
		select {
		case d.late <- late:
		default:
		}
	}
}

// set moves it.
func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = at
	d.timer.Reset(time.Until(at))
}

func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	d.timer.Stop()
}
