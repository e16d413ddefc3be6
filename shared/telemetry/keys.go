package telemetry

import (
	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Keys of facts in logs and spans.
const (
	KeyJobID         = "c2.job.id"
	KeyPartition     = "c2.partition.index"
	KeyAttemptNumber = "c2.attempt.number"
	KeyFence         = "c2.fence"
	KeyStage         = "c2.stage"
	KeyCircuit       = "c2.circuit"
	KeyNodeID        = "c2.node.id"
	KeyGPUID         = "c2.gpu.id"
	KeySectorNumber  = "c2.sector.number"
	KeyMinerID       = "c2.miner.id"
	KeyPool          = "c2.pool"
	KeyBytes         = "c2.bytes"
	KeyFaultKind     = "c2.fault.kind"
	KeyTenant        = "c2.tenant"
	KeyDevice        = "c2.device.id" // the device's name on its node; KeyGPUID is the card's UUID
	KeyWait          = "c2.wait.code"
	KeyOutcome       = "c2.outcome"
	KeyHandoff       = "c2.handoff"
	KeyHandoffReason = "c2.handoff.reason"
	KeyFieldShare    = "c2.synthesis.poseidon.share"
	KeyBitShare      = "c2.synthesis.sha.share"
	KeyState         = "c2.job.state"
	KeySeconds       = "c2.seconds"
	KeyDatabase      = "db.system.name"
	KeyTraceID       = "trace_id"
	KeySpanID        = "span_id"
)

// Attempt adds an attempt's job, partition and fence to an event: log.Info().EmbedObject(telemetry.Attempt(a)).
type Attempt job.Attempt

// MarshalZerologObject implements zerolog.LogObjectMarshaler.
func (a Attempt) MarshalZerologObject(e *zerolog.Event) {
	e.Str(KeyJobID, string(a.Job)).Int(KeyPartition, a.Partition).Uint64(KeyFence, a.Fence)
}

// Fault adds an error and its kind to an event: log.Warn().EmbedObject(telemetry.Fault{Err: err}).
type Fault struct{ Err error }

// MarshalZerologObject implements zerolog.LogObjectMarshaler.
func (f Fault) MarshalZerologObject(e *zerolog.Event) {
	if f.Err != nil {
		e.Str(KeyFaultKind, string(fault.KindOf(f.Err))).Err(f.Err)
	}
}
