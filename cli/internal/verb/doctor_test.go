package verb

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

// scriptedBus answers requests by subject; nobody answers elsewhere.
type scriptedBus struct {
	bus.Bus
	answers map[string]string
	refuses error // every request, when set
}

func (s *scriptedBus) Request(_ context.Context, m bus.Message) (bus.Message, error) {
	if s.refuses != nil {
		return bus.Message{}, s.refuses
	}
	answer, ok := s.answers[m.Subject]
	if !ok {
		return bus.Message{}, fault.New(fault.Transient, "nobody answers")
	}
	return bus.Message{Data: []byte(answer)}, nil
}

func TestDoctorJudgesServers(t *testing.T) {
	t.Parallel()
	const account, events = "$JS.API.INFO", "$JS.API.STREAM.INFO.C2_EVENTS"
	at := func(offset time.Duration) string {
		return fmt.Sprintf(`{"ts":%q,"config":{"num_replicas":3}}`, time.Now().Add(offset).Format(time.RFC3339Nano))
	}
	const roomy = `{"storage":0,"limits":{"max_storage":-1,"max_streams":-1}}`
	for _, c := range []struct {
		name    string
		bus     scriptedBus
		fixes   int
		mention string
	}{
		{"all well", scriptedBus{answers: map[string]string{account: roomy, events: at(0)}}, 0, "from the NATS server's"},
		{"no rack yet", scriptedBus{answers: map[string]string{
			account: roomy, events: `{"error":{"code":404,"description":"stream not found"}}`,
		}}, 0, "not compared: stream not found"},
		{"no jetstream", scriptedBus{answers: map[string]string{
			account: `{"error":{"code":503,"description":"jetstream not enabled"}}`,
		}}, 1, "jetstream not enabled"},
		{"little room", scriptedBus{answers: map[string]string{
			account: `{"storage":5,"limits":{"max_storage":1048576,"max_streams":-1}}`,
		}}, 1, "1.00 MiB may be stored"},
		{"little room, and set up all the same", scriptedBus{answers: map[string]string{
			account: `{"storage":5,"limits":{"max_storage":1048576,"max_streams":1}}`, events: at(0),
		}}, 0, "5 bytes in use"},
		{"few streams", scriptedBus{answers: map[string]string{
			account: `{"storage":5,"limits":{"max_storage":-1,"max_streams":3}}`,
		}}, 1, "3 streams may be made"},
		{"fast clock", scriptedBus{answers: map[string]string{account: roomy, events: at(-time.Minute)}}, 1, "1m"},
		{"slow clock", scriptedBus{answers: map[string]string{account: roomy, events: at(time.Minute)}}, 1, "-"},
		{"no permission", scriptedBus{refuses: fault.New(fault.Invalid, "permission denied")}, 0, "may not ask"},
		{"small messages", scriptedBus{refuses: fault.New(fault.Invalid, "maximum payload exceeded")}, 1, "maximum payload"},
		{"garbage", scriptedBus{answers: map[string]string{account: "{", events: "["}}, 1, "read answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r doctorResult
			r.payload(t.Context(), &c.bus)
			there := r.clock(t.Context(), &c.bus, time.Second)
			r.jetStream(t.Context(), &c.bus, there)
			var text strings.Builder
			r.human(&text)
			if r.Fixes != c.fixes || !strings.Contains(text.String(), c.mention) {
				t.Errorf("%d findings to fix, want %d, and mention of %q:\n%s", r.Fixes, c.fixes, c.mention, &text)
			}
			for _, found := range r.Checks {
				if found.Verdict == verdictFix && found.Fix == "" {
					t.Errorf("finding without remedy: %+v", found)
				}
			}
		})
	}
}
