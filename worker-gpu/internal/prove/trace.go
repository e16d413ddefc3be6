package prove

import (
	"math"
	"time"

	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// follow begins the stages of a run in its trace.
func (t *task) follow(r *attempt.Run) {
	trace := r.Trace()
	trace.About(telemetry.String(telemetry.KeyCircuit, t.Circuit), telemetry.String(telemetry.KeyHandoff, t.Handoff))
	if uuid := t.device.config.UUID; uuid != "" {
		trace.About(telemetry.String(telemetry.KeyGPUID, uuid))
	}
	if t.HandoffReason != "" {
		trace.About(telemetry.String(telemetry.KeyHandoffReason, t.HandoffReason))
	}
	trace.Enter(telemetry.SpanOpen)
}

// traceProof has the stages of a proof, which the engine measured, shown below the proof: those of Start end when the
// engine let the next one start, those of Finish now. What is left before them the engine did something else.
func traceProof(trace *telemetry.Path, began, released time.Time, seconds map[string]float64) {
	part := func(span, key string) telemetry.Part {
		took := seconds[key]
		if math.IsNaN(took) || took < 0 || took > (24*time.Hour).Seconds() {
			took = 0
		}
		return telemetry.Part{Name: span, Took: time.Duration(took * float64(time.Second))}
	}
	trace.Parts(began, released, telemetry.SpanWaitEngine,
		part(telemetry.SpanTransform, "quotient"), part("msm h", "msm_h"), part("msm l", "msm_l"), part("msm a", "msm_a"),
		part("msm b_g1", "msm_b_g1"))
	trace.Parts(released, time.Now(), telemetry.SpanWaitEngine,
		part("msm b_g2", "msm_b_g2"), part("assemble", "assemble"), part(telemetry.SpanVerify, "verify"))
}
