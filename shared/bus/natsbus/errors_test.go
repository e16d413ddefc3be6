package natsbus

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/fault"
)

// What a cluster answers while it changes its leaders, or lacks a server, is another try's to get, and never taken for
// a mistake in what was sent.
func TestKindsOfTheServersAnswers(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		code    int
		errCode jetstream.ErrorCode
		want    fault.Kind
	}{
		"no suitable peers for placement":          {400, 10005, fault.Transient},
		"JetStream system temporarily unavailable": {503, 10008, fault.Transient},
		"duplicate message id is in process":       {409, 10158, fault.Transient},
		"too many requests":                        {429, 10167, fault.Transient},
		"some other conflict":                      {409, 19999, fault.Transient},
		"insufficient resources":                   {503, 10023, fault.Exhausted},
		"message size exceeds maximum allowed":     {400, 10054, fault.Invalid},
		"wrong last sequence: 3":                   {400, 10071, fault.Conflict},
		"stream not found":                         {404, 10059, fault.NotFound},
		"general failure":                          {500, 19999, fault.Internal},
	} {
		err := fmt.Errorf("publish: %w", &jetstream.APIError{Code: c.code, ErrorCode: c.errCode, Description: text})
		if got := kindOf(err); got != c.want {
			t.Errorf("%s: %s, want %s", text, got, c.want)
		}
	}
}
