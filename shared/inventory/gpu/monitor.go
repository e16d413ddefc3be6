package gpu

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// Config says how a Monitor polls.
type Config struct {
	Interval time.Duration `doc:"Time between two looks at the GPUs; one that fails two looks in a row takes no new work."`
}

// DefaultConfig polls as often as nodes beat.
func DefaultConfig() Config { return Config{Interval: 5 * time.Second} }

// Validate demands a positive interval.
func (c *Config) Validate() error {
	if c.Interval <= 0 {
		return fault.New(fault.Invalid, "interval: must be positive, is %s", c.Interval)
	}
	return nil
}

// Polls in a row that change a device's health.
const (
	failsToUnhealthy = 2
	worksToHealthy   = 2
)

// Monitor polls a Library and keeps what it said.
type Monitor struct {
	library Library
	config  Config
	log     zerolog.Logger

	mu      sync.Mutex
	devices map[string]*watched // by key
	driver  string
	missing string
	at      time.Time
}

// watched is a device with its history.
type watched struct {
	Device
	fails, works int // polls in a row
}

// NewMonitor makes a monitor that knows nothing yet.
func NewMonitor(library Library, config Config, log zerolog.Logger) *Monitor {
	return &Monitor{library: library, config: config, log: log, devices: map[string]*watched{}, missing: "not looked yet"}
}

// Inventory is what was found last. It does not wait.
func (m *Monitor) Inventory() Inventory {
	m.mu.Lock()
	defer m.mu.Unlock()
	inv := Inventory{Driver: m.driver, Missing: m.missing, At: m.at}
	for _, w := range m.devices {
		inv.Devices = append(inv.Devices, w.Device)
	}
	slices.SortFunc(inv.Devices, func(a, b Device) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.UUID, b.UUID))
	})
	return inv
}

// Service polls until it is stopped. It is ready after the first poll, or after one interval if the driver hangs.
func (m *Monitor) Service() service.Service {
	return service.Service{Name: "gpu monitor", Run: func(ctx context.Context, c *service.Control) error {
		m.run(ctx, c)
		return nil
	}}
}

// poll is what one call of the library, in its own goroutine, gave.
type poll struct {
	driver   string
	readings []Reading
	err      error
	open     error // the library cannot be used
}

func (m *Monitor) run(ctx context.Context, c *service.Control) {
	ticker := time.NewTicker(m.config.Interval)
	defer ticker.Stop()
	polls := make(chan poll, 1) // room for one that comes too late
	driver, opened := "", false
	ask := func() {
		go func() {
			var p poll
			if !opened {
				if driver, p.open = m.library.Open(); p.open != nil {
					polls <- p
					return
				}
				opened = true
			}
			p.driver = driver
			p.readings, p.err = m.library.Read()
			polls <- p
		}()
	}
	asked := time.Now() // the present call, if flying
	flying := true
	ask()
	for {
		select {
		case p := <-polls:
			flying = false
			if p.open != nil {
				m.unavailable(p.open)
				c.Ready()
				waitForStop(ctx, c)
				return
			}
			m.apply(p)
			c.Ready()
		case <-ticker.C:
			if flying {
				waited := time.Since(asked).Round(time.Second)
				m.apply(poll{err: fault.New(fault.Device, "the driver has not answered for %s", waited)})
				c.Ready()
				continue
			}
			asked, flying = time.Now(), true
			ask()
		case <-c.Stopping():
			if !flying && opened {
				m.library.Close()
			}
			return
		case <-ctx.Done():
			return
		}
	}
}

func waitForStop(ctx context.Context, c *service.Control) {
	select {
	case <-c.Stopping():
	case <-ctx.Done():
	}
}

// unavailable says once that there are no GPUs, and why.
func (m *Monitor) unavailable(err error) {
	m.mu.Lock()
	m.missing, m.at = err.Error(), time.Now()
	m.mu.Unlock()
	m.log.Info().Msg("GPU metrics unavailable: " + err.Error())
}

// apply takes a poll into the books.
func (m *Monitor) apply(p poll) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = time.Now()
	if p.err == nil {
		m.driver, m.missing = p.driver, ""
	} else if m.driver == "" {
		m.missing = p.err.Error()
	}
	seen := map[string]bool{}
	for _, r := range p.readings {
		key := m.keyOf(r.Device)
		w, known := m.devices[key]
		if !known {
			w = &watched{works: worksToHealthy, Device: Device{Healthy: true}}
			m.devices[key] = w
			if r.Err == nil {
				m.log.Info().Str(telemetry.KeyGPUID, r.Device.UUID).Str("name", r.Device.Name).
					Int("numa", r.Device.NUMANode).Str("memory", r.Device.Memory.String()).Msg("GPU found")
			}
		}
		seen[key] = true
		w.update(r)
		m.judge(w, r.Err, r.Lost)
	}
	for _, key := range slices.Sorted(maps.Keys(m.devices)) {
		if !seen[key] {
			err := p.err
			if err == nil {
				err = fault.New(fault.Device, "the driver does not list it any more")
			}
			m.judge(m.devices[key], err, false)
		}
	}
}

// keyOf is what a device is remembered by: its UUID, or for one that does not tell it that of the device last seen at
// the index.
func (m *Monitor) keyOf(d Device) string {
	if d.UUID != "" {
		delete(m.devices, nameless(d.Index)) // it has told its name now
		return d.UUID
	}
	for key, w := range m.devices {
		if w.Index == d.Index && !w.MIG && !d.MIG {
			return key
		}
	}
	return nameless(d.Index)
}

func nameless(index int) string { return fmt.Sprintf("index %d", index) }

// update takes over what was read; of a device in error only what it still tells.
func (w *watched) update(r Reading) {
	healthy, reason := w.Healthy, w.Reason
	if r.Err == nil || w.UUID == "" {
		w.Device = r.Device
	}
	w.Healthy, w.Reason = healthy, reason
}

// judge counts a poll and changes a device's health.
func (m *Monitor) judge(w *watched, err error, lost bool) {
	if err == nil {
		w.fails, w.works = 0, w.works+1
		if !w.Healthy && w.works >= worksToHealthy {
			w.Healthy = true
			m.log.Warn().Str(telemetry.KeyGPUID, w.UUID).Int("index", w.Index).Msg("GPU answers again")
		}
		if w.Healthy {
			w.Reason = ""
		}
		return
	}
	w.works, w.fails, w.Reason = 0, w.fails+1, err.Error()
	if w.Healthy && (lost || w.fails >= failsToUnhealthy) {
		w.Healthy = false
		m.log.Error().Str(telemetry.KeyGPUID, w.UUID).Int("index", w.Index).Err(err).
			Msg("GPU is unhealthy, it takes no new work")
	}
}

// String is the amount for people.
func (m Memory) String() string {
	if !m.Known {
		return "unknown"
	}
	return m.Total.String()
}
