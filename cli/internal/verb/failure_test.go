package verb

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/config"
	"github.com/proofrack/proofrack/shared/fault"
)

// Every error is one line that reads well, whatever it was made of, and shows no secret of an address.
func TestErrorsAreOneReadableLine(t *testing.T) {
	t.Parallel()
	one, other := errors.New("disk full"), errors.New("close: bad file")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"plain":           {one, "disk full"},
		"joined":          {errors.Join(one, other), "disk full; close: bad file"},
		"joined, wrapped": {fmt.Errorf("write x: %w", errors.Join(one, nil, other)), "write x: disk full; close: bad file"},
		"settings": {&config.Error{Problems: []config.Problem{{Key: "a", Text: "must be 1"}, {Key: "b", Text: "no"}}},
			"configuration has 2 problems: a: must be 1; b: no"},
		"blank lines": {errors.New("a\r\n\n  \tb;\nc\n"), "a; b; c"},
		"hostile":     {errors.New("a\x1b[31m\u2028\u202eb\u0085c"), "a [31m; b c"},
		"address": {fault.New(fault.Transient, "dial nats://u:secret@h:1: %w", errors.Join(one, other)),
			"dial nats://***@h:1: disk full; close: bad file"},
	} {
		for _, k := range []kind{internalFault, noAnswer} {
			var human, machine bytes.Buffer
			failed := fail(k, "", "%w", c.err)
			reportFailure(&human, false, failed)
			reportFailure(&machine, true, failed)
			if got := human.String(); got != "proofrack: "+c.want+"\n" {
				t.Errorf("%s: %q", name, got)
			}
			if got := machine.String(); !strings.Contains(got, fmt.Sprintf(`"message":%q`, c.want)) {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
}
