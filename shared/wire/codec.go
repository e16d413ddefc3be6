package wire

import (
	"encoding/json"
	"fmt"

	"github.com/proofrack/proofrack/shared/fault"
)

// BodyBytesMax bounds every body on the bus: below NATS's own limit of 1 MiB, with room for headers.
const BodyBytesMax = 960 << 10

// Body is a message body.
type Body interface {
	// Check refuses what no sender of this program writes.
	Check() error
}

// envelope is what every body begins with.
type envelope struct {
	Version int `json:"v"`
	// Oldest is the oldest version whose builds may read the body, Version when it is not there.
	Oldest int `json:"v_min"`
}

// readable tells whether the writer's range and this build's overlap: an older build's bodies are known here, and a
// newer build says itself down to which version its bodies can be read.
func (e envelope) readable() bool {
	if e.Oldest < 1 || e.Oldest > e.Version {
		e.Oldest = e.Version
	}
	return e.Version >= VersionMin && e.Oldest <= Version
}

// Encode writes a body in this build's version, for builds down to VersionMin.
func Encode(body Body) ([]byte, error) {
	if err := body.Check(); err != nil {
		return nil, fmt.Errorf("encode %T: %w", body, err)
	}
	fields, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", body, err)
	}
	head := fmt.Appendf(nil, `{"v":%d,"v_min":%d`, Version, VersionMin)
	if len(fields) > 2 {
		head = append(head, ',')
	}
	data := append(head, fields[1:]...)
	if len(data) > BodyBytesMax {
		return nil, fault.New(fault.Exhausted, "encode %T: %d bytes are over the limit of %d", body, len(data), BodyBytesMax)
	}
	return data, nil
}

// Decode reads and checks a body of a build that this one works with. Errors are fault.Invalid.
func Decode(data []byte, body Body) error {
	var e envelope
	if err := unmarshal(data, body, &e); err != nil {
		return err
	}
	if !e.readable() {
		return fault.WithHint(
			fault.New(fault.Invalid, "decode %T: wire version %d, this build reads %d to %d", body, e.Version, VersionMin,
				Version),
			"restart the older side with a build of the same or the next version",
		)
	}
	return fill(data, body)
}

// DecodeBeat reads and checks a beat of any version, for it is a beat that says which versions its sender reads.
func DecodeBeat(data []byte, beat *Beat) error {
	var e envelope
	if err := unmarshal(data, beat, &e); err != nil {
		return err
	}
	if e.Version < 1 {
		return fault.New(fault.Invalid, "decode %T: wire version %d", beat, e.Version)
	}
	return fill(data, beat)
}

// unmarshal reads a body's bounded text into to.
func unmarshal(data []byte, body Body, to any) error {
	if len(data) > BodyBytesMax {
		return fault.New(fault.Invalid, "decode %T: %d bytes are over the limit of %d", body, len(data), BodyBytesMax)
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fault.As(fault.Invalid, fmt.Errorf("decode %T: %w", body, err))
	}
	return nil
}

// fill reads a body's fields and checks them.
func fill(data []byte, body Body) error {
	if err := unmarshal(data, body, body); err != nil {
		return err
	}
	if err := body.Check(); err != nil {
		return fault.As(fault.Invalid, fmt.Errorf("decode %T: %w", body, err))
	}
	return nil
}
