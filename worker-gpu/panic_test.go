//go:build toy

package workergpu_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

var served = regexp.MustCompile(`(?:127\.0\.0\.1|\[::1\]):\d+`)

// status asks a worker's own service for its state.
func (r *rack) status(p *process) flight.Status {
	r.t.Helper()
	address := ""
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, "health is served") {
			address = served.FindString(line)
		}
	}
	client := http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://" + address + "/status")
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	var s flight.Status
	if err := json.NewDecoder(answer.Body).Decode(&s); err != nil {
		r.t.Fatal(err)
	}
	return s
}

// A panic where a proof is made ends the engine and nothing else: the job fails with the words of the panic, the worker
// answers whoever asks for its state, while there is no engine, too, and the next job is proved. (That nothing of the
// worker stays blocked is seen in package engine, whose tests may leave no goroutine.)
func TestB27APanicBlocksNobody(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	gpu := r.simulated(`{"failures":["panic@start#1","panic@finish#2"]}`, "http.listen=127.0.0.1:0",
		"engine.pause_min=1s")
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	for range 2 {
		a := r.claim(r.job(1))
		result := r.result()
		if result.Attempt != a || result.Outcome != job.OutcomeFailed ||
			!strings.Contains(faultText(result), "panic: simdevice: ordered panic") {
			t.Fatalf("result %s, %s", result.Outcome, faultText(result))
		}
		if s := r.status(gpu); !slices.ContainsFunc(s.Reports, func(f flight.Report) bool { return f.Process == "gpu" }) {
			t.Errorf("status %+v", s)
		}
	}
	a := r.claim(r.job(3))
	r.wantProof(r.result(), a, 3)
	r.clean()
}
