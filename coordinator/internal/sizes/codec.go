package sizes

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// version is that of the stored form. A reader takes no other: what was learned is learned again.
const version = 1

// EncodedBytesMax bounds each stored part of a table.
const EncodedBytesMax = 960 << 10

// storedRow and storedSpeed are rows as they are stored.
type (
	storedRow struct {
		Key
		Computed bytesize.Bytes   `json:"computed"`
		Peaks    []bytesize.Bytes `json:"peaks,omitempty"`
		Over     bool             `json:"over,omitempty"`
		Under    bool             `json:"under,omitempty"`
		Pin      bytesize.Bytes   `json:"pin,omitempty"`
		At       time.Time        `json:"at"`
	}
	storedSpeed struct {
		SpeedKey
		Synthesis time.Duration `json:"synthesis_ns,omitempty"`
		Proof     time.Duration `json:"proof_ns,omitempty"`
		Samples   int           `json:"samples"`
		At        time.Time     `json:"at"`
	}
	stored struct {
		Version int           `json:"v"`
		Rows    []storedRow   `json:"rows,omitempty"`
		Speeds  []storedSpeed `json:"speeds,omitempty"`
	}
)

// Clone is a copy that shares nothing with the table.
func (t *Table) Clone() *Table {
	out := New(t.cfg)
	out.changes = t.changes
	for k, r := range t.rows {
		same := *r
		same.peaks = slices.Clone(r.peaks)
		out.rows[k] = &same
	}
	for k, s := range t.speeds {
		out.speeds[k] = s
	}
	return out
}

// Encode gives the table's two parts as they are stored, each of at most EncodedBytesMax.
func (t *Table) Encode() (rows, speeds []byte, err error) {
	first, second := stored{Version: version}, stored{Version: version}
	for _, k := range t.keys() {
		r := t.rows[k]
		first.Rows = append(first.Rows, storedRow{
			Key: k, Computed: r.computed, Peaks: r.peaks, Over: r.over, Under: r.under, Pin: r.pin, At: r.at,
		})
	}
	for _, s := range t.Speeds() {
		second.Speeds = append(second.Speeds, storedSpeed{s.SpeedKey, s.Synthesis, s.Proof, s.Samples, s.At})
	}
	if rows, err = encode(&first); err == nil {
		speeds, err = encode(&second)
	}
	return rows, speeds, err
}

func encode(s *stored) ([]byte, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode learned sizes: %w", err)
	}
	if len(data) > EncodedBytesMax {
		return nil, fault.New(fault.Exhausted, "encode learned sizes: %d bytes are over the limit of %d", len(data),
			EncodedBytesMax)
	}
	return data, nil
}

// Decode reads a table that was stored; a part that is nil is empty. Errors: kind Corrupt for what Encode does not
// write.
func Decode(cfg Config, rows, speeds []byte) (*Table, error) {
	t := New(cfg)
	for _, part := range [][]byte{rows, speeds} {
		if part == nil {
			continue
		}
		if err := t.decode(part); err != nil {
			return nil, fault.As(fault.Corrupt, fmt.Errorf("decode learned sizes: %w", err))
		}
	}
	t.changes = 0
	return t, nil
}

func (t *Table) decode(data []byte) error {
	var s stored
	if len(data) > EncodedBytesMax {
		return fmt.Errorf("%d bytes are over the limit of %d", len(data), EncodedBytesMax)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if s.Version != version {
		return fmt.Errorf("version %d, this build reads %d", s.Version, version)
	}
	if len(s.Rows) > RowsMax || len(s.Speeds) > SpeedsMax {
		return fmt.Errorf("%d sizes and %d speeds are over the limits", len(s.Rows), len(s.Speeds))
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		if err := r.check(); err != nil {
			return err
		}
		back := &row{computed: r.Computed, peaks: r.Peaks, over: r.Over, under: r.Under, pin: r.Pin, at: r.At}
		back.reckon()
		t.rows[r.Key] = back
	}
	for _, v := range s.Speeds {
		if err := v.SpeedKey.Check(); err != nil {
			return err
		}
		if v.Synthesis < 0 || v.Proof < 0 || v.Samples < 0 {
			return fmt.Errorf("speed of circuit %s on %s/%s is negative", v.Circuit, v.Node, v.Device)
		}
		t.SetSpeed(v.SpeedKey, Speed{v.Synthesis, v.Proof, v.Samples, v.At})
	}
	return nil
}

func (r *storedRow) check() error {
	if err := r.Key.Check(); err != nil {
		return err
	}
	bad := func(b bytesize.Bytes) bool { return b < 0 || b > bytesize.Max }
	if len(r.Peaks) > SamplesMax || bad(r.Computed) || bad(r.Pin) || slices.ContainsFunc(r.Peaks, bad) {
		return fmt.Errorf("size of circuit %s, stage %s, pool %s is over a bound", r.Circuit, r.Stage, r.Pool)
	}
	return nil
}

// Recall adds what an earlier table knew, as if it had been measured before what this one knows. Pins of this one stay.
func (t *Table) Recall(before *Table) {
	t.changes++
	for _, k := range before.keys() {
		old := before.rows[k]
		r, ok := t.rows[k]
		switch {
		case !ok && len(t.rows) < RowsMax:
			same := *old
			same.peaks = slices.Clone(old.peaks)
			t.rows[k] = &same
			continue
		case !ok:
			continue
		case r.pin == 0:
			r.pin = old.pin
		}
		if r.computed == 0 {
			r.computed = old.computed
		}
		if r.computed == old.computed {
			later := r.peaks
			r.peaks = slices.Clone(old.peaks)
			r.reckon()
			for _, peak := range later {
				r.add(peak)
			}
			t.drifts(k, r)
		}
	}
	for k, s := range before.speeds {
		if _, ok := t.speeds[k]; !ok {
			t.SetSpeed(k, s)
		}
	}
}
