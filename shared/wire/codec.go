package wire

import (
	"encoding/json"
	"fmt"

	"github.com/proofrack/proofrack/shared/fault"
)

// Versions of the wire that this build writes (Version) and reads (VersionMin … Version).
const (
	VersionMin = 1
	Version    = 2
)

// BodyBytesMax bounds every body on the bus: below NATS's own limit of 1 MiB, with room for headers.
const BodyBytesMax = 960 << 10

// Body is a message body.
type Body interface {
	// Check refuses what no sender of this program writes.
	Check() error
}

type envelope struct {
	Version int `json:"v"`
}

// Encode writes a body in this build's version.
func Encode(body Body) ([]byte, error) { return encode(body, Version) }

func encode(body Body, version int) ([]byte, error) {
	if err := body.Check(); err != nil {
		return nil, fmt.Errorf("encode %T: %w", body, err)
	}
	fields, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", body, err)
	}
	head := fmt.Appendf(nil, `{"v":%d`, version)
	if len(fields) > 2 {
		head = append(head, ',')
	}
	data := append(head, fields[1:]...)
	if len(data) > BodyBytesMax {
		return nil, fault.New(fault.Exhausted, "encode %T: %d bytes are over the limit of %d", body, len(data), BodyBytesMax)
	}
	return data, nil
}

// Decode reads and checks a body. Errors are fault.Invalid.
func Decode(data []byte, body Body) error {
	if len(data) > BodyBytesMax {
		return fault.New(fault.Invalid, "decode %T: %d bytes are over the limit of %d", body, len(data), BodyBytesMax)
	}
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return fault.As(fault.Invalid, fmt.Errorf("decode %T: %w", body, err))
	}
	if e.Version < VersionMin || e.Version > Version {
		return fault.WithHint(
			fault.New(
				fault.Invalid,
				"decode %T: wire version %d, this build reads %d to %d",
				body,
				e.Version,
				VersionMin,
				Version,
			),
			"restart the older side with a build of the same or the next version",
		)
	}
	if err := json.Unmarshal(data, body); err != nil {
		return fault.As(fault.Invalid, fmt.Errorf("decode %T: %w", body, err))
	}
	if err := body.Check(); err != nil {
		return fault.As(fault.Invalid, fmt.Errorf("decode %T: %w", body, err))
	}
	return nil
}
