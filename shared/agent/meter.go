package agent

import (
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/inventory"
)

// MeterConfig says which process is measured.
type MeterConfig struct {
	// PID is the process's number. Required.
	PID int
	// Facts reads what it has. Required.
	Facts *inventory.Host
	// Every is how often it is looked at while something is measured. Default 50 ms.
	Every time.Duration
}

// Meter measures how much private memory a process has while attempts are at work in it: that is what the system can
// not take back. What it has mapped of files and of segments is left out, as it counts elsewhere; so its own high-water
// mark, and that of its control group, which count these and the page cache, tell less than looking often does. What
// comes and goes between two looks is missed, but an allocator gives memory back slowly.
//
// Its methods may be called from several goroutines. A nil Meter measures nothing.
type Meter struct {
	config MeterConfig

	mu sync.Mutex
	// floor is what the process had before any attempt.
	floor bytesize.Bytes
	spans map[*Span]struct{}
	// widest is how many attempts were at work at once since the process was about at its floor: the memory of those
	// before may still be there. high is the most it had since.
	widest int
	high   bytesize.Bytes
	stop   chan struct{} // ends the looks; nil while nothing is measured
}

// NewMeter takes what the process has now as its floor; an error when it cannot be read.
func NewMeter(config MeterConfig) (*Meter, error) {
	if config.Every <= 0 {
		config.Every = 50 * time.Millisecond
	}
	m := &Meter{config: config, spans: map[*Span]struct{}{}}
	var err error
	m.floor, err = m.level()
	return m, err
}

func (m *Meter) level() (bytesize.Bytes, error) {
	r, err := m.config.Facts.Resident(m.config.PID)
	return r.Anonymous, err
}

// Peak is the most that a process had beyond its floor while an attempt was at work.
type Peak struct {
	// Bytes are the process's, 0 when it could not be read.
	Bytes bytesize.Bytes
	// Attempts is among how many they are to be shared out, at least 1.
	Attempts int
}

// Span is the time of one attempt.
type Span struct {
	meter *Meter
	peak  Peak
}

// Begin begins to measure; End must follow.
func (m *Meter) Begin() *Span {
	s := &Span{meter: m, peak: Peak{Attempts: 1}}
	if m == nil {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now, err := m.level(); len(m.spans) == 0 && err == nil && now-m.floor <= (m.high-m.floor)/8 {
		m.widest, m.high = 0, m.floor
	}
	m.spans[s] = struct{}{}
	m.widest = max(m.widest, len(m.spans))
	m.look()
	if m.stop == nil {
		m.stop = make(chan struct{})
		go m.watch(m.stop)
	}
	return s
}

// End gives the peak.
func (s *Span) End() Peak {
	m := s.meter
	if m == nil {
		return s.peak
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, on := m.spans[s]; !on {
		return s.peak
	}
	m.look()
	delete(m.spans, s)
	if len(m.spans) == 0 {
		close(m.stop)
		m.stop = nil
	}
	return s.peak
}

// watch looks until it is stopped.
func (m *Meter) watch(stop <-chan struct{}) {
	ticker := time.NewTicker(m.config.Every)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			m.mu.Lock()
			m.look()
			m.mu.Unlock()
		}
	}
}

// look reads what the process has, for all that is measured.
func (m *Meter) look() {
	now, err := m.level()
	if err != nil {
		return // it is about to end
	}
	m.high = max(m.high, now)
	for s := range m.spans {
		s.peak.Bytes = max(s.peak.Bytes, now-m.floor)
		s.peak.Attempts = m.widest
	}
}
