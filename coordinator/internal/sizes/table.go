package sizes

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Bounds of a table.
const (
	RowsMax    = 320
	SpeedsMax  = 3072
	SamplesMax = 128
	// SamplesMin is how many peaks it takes to go by them.
	SamplesMin = 5
)

// Config tunes a table. Start from DefaultConfig.
type Config struct {
	// Margin is added to measured peaks where they are booked, as a share: 0.1 is a tenth.
	Margin float64
	// DriftMax is the share by which peaks may be off from what is computed before that is told.
	DriftMax float64
	// Slack is by how much measured ram may be over what is computed without any consequence: a process's memory is no
	// exact measure. The hosts' margin has room for it.
	Slack bytesize.Bytes
}

// DefaultConfig is a tenth on top of what was measured, drift over a fifth, and 32 MiB of slack.
func DefaultConfig() Config { return Config{Margin: 0.1, DriftMax: 0.2, Slack: 32 * bytesize.MiB} }

// Validate tells all that is wrong.
func (c *Config) Validate() error {
	var errs []error
	share := func(name string, value float64) {
		if !(value >= 0 && value <= 10) {
			errs = append(errs, fmt.Errorf("%s must be 0 to 10, not %g", name, value))
		}
	}
	share("peak_margin", c.Margin)
	share("drift_max", c.DriftMax)
	if c.Slack < 0 {
		errs = append(errs, fmt.Errorf("peak_slack must not be negative, as %d is", c.Slack))
	}
	return errors.Join(errs...)
}

// Size is what is known of one key.
type Size struct {
	Key
	// Computed is what the workers say, P50 and P99 are of the latest Samples measured peaks, by nearest rank.
	Computed bytesize.Bytes
	P50, P99 bytesize.Bytes
	Samples  int
	// Booked is what is booked for the key: Computed, or P99 and a margin where that is more, or what was pinned.
	Booked bytesize.Bytes
	// Over and Under tell that the peaks drift from what is computed.
	Over, Under bool
	Pinned      bool
	MeasuredAt  time.Time
}

// row is what a table keeps of a key.
type row struct {
	computed bytesize.Bytes
	// peaks are the latest, the oldest first; p50 and p99 are of them.
	peaks       []bytesize.Bytes
	p50, p99    bytesize.Bytes
	over, under bool
	pin         bytesize.Bytes // 0 for none
	at          time.Time
}

// Speed is how long attempts at a circuit take, as averages in which the latest count most.
type Speed struct {
	// Synthesis is the time of one for the device, Proof for how long a proof takes the device; 0 is not known.
	Synthesis, Proof time.Duration
	Samples          int
	At               time.Time
}

// Table is all that was learned. It is not safe for concurrent use.
type Table struct {
	cfg     Config
	rows    map[Key]*row
	speeds  map[SpeedKey]Speed
	changes uint64
}

// New makes an empty table. The Config must be valid.
func New(cfg Config) *Table {
	return &Table{cfg: cfg, rows: map[Key]*row{}, speeds: map[SpeedKey]Speed{}}
}

// Changes rises with each change.
func (t *Table) Changes() uint64 { return t.changes }

// reckon computes percentiles by nearest rank.
func (r *row) reckon() {
	r.p50, r.p99 = 0, 0
	if n := len(r.peaks); n > 0 {
		sorted := slices.Sorted(slices.Values(r.peaks))
		r.p50, r.p99 = sorted[(n*50+99)/100-1], sorted[(n*99+99)/100-1]
	}
}

// peak is the 99th percentile, 0 while there are too few to go by.
func (r *row) peak() bytesize.Bytes {
	if len(r.peaks) < SamplesMin {
		return 0
	}
	return r.p99
}

// booked is what is booked in place of what is computed.
func (t *Table) booked(k Key, r *row) bytesize.Bytes {
	if r.pin > 0 {
		return r.pin
	}
	peak := r.peak()
	if peak <= r.computed+t.tolerance(k, r) {
		return r.computed
	}
	return max(r.computed, peak+bytesize.Bytes(float64(peak)*t.cfg.Margin))
}

// tolerance is by how much a peak may be over what is computed: file systems count a little of their own.
func (t *Table) tolerance(k Key, r *row) bytesize.Bytes {
	if k.Pool == ledger.PoolRAM {
		return max(r.computed/64, t.cfg.Slack)
	}
	return r.computed / 64
}

// Outcome is what a measurement changed.
type Outcome struct {
	Size Size
	// Resized tells that other bytes are booked now, Told that drift begins or ends.
	Resized, Told bool
}

// Observe takes the measured peak of an attempt over, beside what the workers compute now. Another computed size is
// that of another build or setting: what was measured beside the old one is worth nothing then. Measurements that
// cannot be are left out.
func (t *Table) Observe(now time.Time, k Key, computed, peak bytesize.Bytes) Outcome {
	if k.Check() != nil || computed <= 0 || peak <= 0 || peak > bytesize.Max {
		return Outcome{}
	}
	t.changes++
	r := t.row(k)
	before := t.booked(k, r)
	if r.computed != computed {
		before = computed
		if r.pin > 0 {
			before = r.pin
		}
		*r = row{computed: computed, pin: r.pin}
	}
	r.at = now
	r.add(peak)
	told := t.drifts(k, r)
	return Outcome{Size: t.size(k, r), Resized: t.booked(k, r) != before, Told: told}
}

func (r *row) add(peak bytesize.Bytes) {
	r.peaks = append(r.peaks, peak)
	if more := len(r.peaks) - SamplesMax; more > 0 {
		r.peaks = slices.Delete(r.peaks, 0, more)
	}
	r.reckon()
}

// drifts looks whether the peaks are off, and tells whether that is new.
func (t *Table) drifts(k Key, r *row) bool {
	peak := r.peak()
	if peak == 0 {
		return false
	}
	most := bytesize.Bytes(float64(r.computed) * t.cfg.DriftMax)
	if k.Pool == ledger.PoolRAM {
		most = max(most, t.cfg.Slack)
	}
	over, under := peak > r.computed+most, peak < r.computed-most
	news := over != r.over || under != r.under
	r.over, r.under = over, under
	return news
}

// row gives the row of a key, made when it is new; then one may have to go.
func (t *Table) row(k Key) *row {
	if r := t.rows[k]; r != nil {
		return r
	}
	if len(t.rows) >= RowsMax {
		if oldest, ok := t.oldestRow(); ok {
			delete(t.rows, oldest)
		}
	}
	r := &row{}
	t.rows[k] = r
	return r
}

func (t *Table) oldestRow() (oldest Key, ok bool) {
	for _, k := range t.keys() {
		if r := t.rows[k]; r.pin == 0 && (!ok || r.at.Before(t.rows[oldest].at)) {
			oldest, ok = k, true
		}
	}
	return oldest, ok
}

func (t *Table) keys() []Key { return slices.SortedFunc(maps.Keys(t.rows), Key.compare) }

// Surplus is by how much more is booked for a key than the workers compute; it is negative by a pin alone. A row that
// was learned beside another computed size does not count.
func (t *Table) Surplus(k Key, computed bytesize.Bytes) bytesize.Bytes {
	r := t.rows[k]
	switch {
	case r == nil:
		return 0
	case r.pin > 0:
		return r.pin - computed
	case r.computed != computed:
		return 0
	}
	return t.booked(k, r) - computed
}

// Pin has so many bytes booked for a key until Unpin. Errors: kind Invalid for a key or amount that cannot be, or for
// less than a segment is long (files have the size they have), Exhausted when all rows are pinned.
func (t *Table) Pin(now time.Time, k Key, bytes bytesize.Bytes) error {
	if err := k.Check(); err != nil {
		return fmt.Errorf("pin size: %w", err)
	}
	if bytes <= 0 || bytes > bytesize.Max {
		return fault.New(fault.Invalid, "pin size: %d bytes: must be 1 to %d", bytes, int64(bytesize.Max))
	}
	r := t.rows[k]
	if r == nil && len(t.rows) >= RowsMax {
		if _, ok := t.oldestRow(); !ok {
			return fault.New(fault.Exhausted, "pin size: all %d rows are pinned", RowsMax)
		}
	}
	if r != nil && bytes < r.computed && (k.Pool == ledger.PoolSHM || k.Pool == ledger.PoolDisk) {
		return fault.New(fault.Invalid, "pin size: a segment of circuit %s takes %s of %s, not %s", k.Circuit, r.computed,
			k.Pool, bytes)
	}
	if r == nil {
		r = t.row(k)
		r.at = now
	}
	r.pin = bytes
	t.changes++
	return nil
}

// Unpin goes by what is measured again. Errors: kind NotFound when nothing is pinned.
func (t *Table) Unpin(k Key) error {
	r := t.rows[k]
	if r == nil || r.pin == 0 {
		return fault.New(fault.NotFound, "no size of circuit %s is pinned for stage %s, kind %q, pool %s", k.Circuit, k.Stage,
			k.Kind, k.Pool)
	}
	r.pin = 0
	if len(r.peaks) == 0 && r.computed == 0 {
		delete(t.rows, k)
	}
	t.changes++
	return nil
}

func (t *Table) size(k Key, r *row) Size {
	return Size{
		Key: k, Computed: r.computed, P50: r.p50, P99: r.p99, Samples: len(r.peaks),
		Booked: t.booked(k, r), Over: r.over, Under: r.under, Pinned: r.pin > 0, MeasuredAt: r.at,
	}
}

// Sizes gives all rows by circuit, stage, kind and pool.
func (t *Table) Sizes() []Size {
	out := make([]Size, 0, len(t.rows))
	for _, k := range t.keys() {
		out = append(out, t.size(k, t.rows[k]))
	}
	return out
}

// Drifting counts the rows whose peaks are off now.
func (t *Table) Drifting() (count int) {
	for _, r := range t.rows {
		if r.over || r.under {
			count++
		}
	}
	return count
}

// SetSpeed keeps the speed of a device; keys that cannot be are left out.
func (t *Table) SetSpeed(k SpeedKey, s Speed) {
	if k.Check() != nil {
		return
	}
	if _, ok := t.speeds[k]; !ok && len(t.speeds) >= SpeedsMax { // many at once, so that it is done seldom
		oldest := slices.SortedFunc(maps.Keys(t.speeds), func(a, b SpeedKey) int {
			return cmp.Or(t.speeds[a].At.Compare(t.speeds[b].At), a.compare(b))
		})
		for _, old := range oldest[:SpeedsMax/8] {
			delete(t.speeds, old)
		}
	}
	t.speeds[k] = s
	t.changes++
}

// Speed is what is known of a device; the zero Speed when nothing is.
func (t *Table) Speed(circuit string, node job.Node, device job.Device) Speed {
	return t.speeds[SpeedKey{Circuit: circuit, Node: node, Device: device}]
}

// SpeedRow is a Speed with its key.
type SpeedRow struct {
	SpeedKey
	Speed
}

// Speeds gives all speeds by circuit, node and device.
func (t *Table) Speeds() []SpeedRow {
	out := make([]SpeedRow, 0, len(t.speeds))
	for _, k := range slices.SortedFunc(maps.Keys(t.speeds), SpeedKey.compare) {
		out = append(out, SpeedRow{k, t.speeds[k]})
	}
	return out
}

// Typical is the mean speed of all devices at a circuit; the zero Speed when none was measured.
func (t *Table) Typical(circuit string) Speed {
	var sum Speed
	var syntheses, proofs time.Duration
	for _, r := range t.Speeds() {
		if r.Circuit != circuit {
			continue
		}
		if r.Synthesis > 0 {
			sum.Synthesis += r.Synthesis
			syntheses++
		}
		if r.Proof > 0 {
			sum.Proof += r.Proof
			proofs++
		}
	}
	if syntheses > 0 {
		sum.Synthesis /= syntheses
	}
	if proofs > 0 {
		sum.Proof /= proofs
	}
	return sum
}
