package store

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// largeRecord is a legal record of the most partitions, each with all that can be known of it and with so many listed
// attempts. All that workers say is long and of one character.
func largeRecord(id job.ID, character string, attempts int) *job.Record {
	text := strings.Repeat(character, 300)
	late := time.Date(2026, 12, 31, 23, 59, 59, 123456789, time.FixedZone("", -12*3600-45*60))
	name := strings.Repeat("n", 32)
	report := func(message string) *fault.Report {
		return &fault.Report{Kind: fault.Kind(text), Stage: text, Message: message, Hint: text}
	}
	attempt := job.AttemptRecord{
		Fence: math.MaxUint64, Node: job.Node(name), Device: job.Device(name), StartedAt: late, EndedAt: &late,
		Outcome: job.OutcomeHandedBack, Fault: report(text), Handoff: text,
		HandoffReason: text, Build: text,
		DeviceUUID: text, TraceID: text,
		Seconds: map[string]float64{text: math.MaxFloat64, "x": 0.1},
	}
	hash := strings.Repeat("a", 64)
	r := &job.Record{
		ID: id, Tenant: job.Tenant(name), Key: strings.Repeat("<", job.KeyBytesMax), InputHash: hash, Kind: name,
		Circuit: strings.Repeat("c", 64), ProverID: hash, Miner: "f0" + strings.Repeat("9", 20),
		SectorNumber: math.MaxUint64, Output: job.OutputPartitions, Priority: -100, Deadline: &late,
		Inputs:      job.Object{Name: wire.InputsName(id), Bytes: math.MaxInt64, SHA256: hash},
		TraceParent: strings.Repeat("<", 256),
		SubmittedAt: late, State: job.Failed, EndedAt: &late, Fault: report(strings.Repeat(text, 1000)), ParamsDigest: hash,
		LateCount: math.MaxInt64, Result: &job.Object{Name: string(id), Bytes: math.MaxInt64, SHA256: hash},
	}
	for i := range job.PartitionsMax {
		p := job.Partition{
			Stage: job.Verified, Slice: job.Object{Name: wire.SliceName(id, i), Bytes: math.MaxInt64, SHA256: hash},
			Fence: math.MaxUint64, Node: job.Node(name), Device: job.Device(name), StageAt: late, NotBefore: &late,
			FailedCount: math.MaxInt64, LostCount: math.MaxInt64, Proof: make([]byte, wire.ProofBytes),
			Unlisted: &job.AttemptTally{
				Count: math.MaxInt32, FirstAt: late, LastAt: late, Outcomes: map[job.Outcome]int{
					job.OutcomeOK: math.MaxInt32, job.OutcomeFailed: math.MaxInt32, job.OutcomeLost: math.MaxInt32,
					job.OutcomeHandedBack: math.MaxInt32, job.OutcomeCancelled: math.MaxInt32,
				},
			},
		}
		for range attempts {
			p.Attempts = append(p.Attempts, attempt)
		}
		r.Partitions = append(r.Partitions, p)
	}
	return r
}

// Whatever happened to a job and whatever workers said of it, its record can be written: else it could never end. No
// attempt is forgotten by that.
func TestTheLargestRecordFits(t *testing.T) {
	t.Parallel()
	const id = job.ID("01890a5d-ac96-774b-bcce-b302099a8057")
	for _, character := range []string{"x", "<", "\x00", `"`, "ü", "…", "\U0001f980", "\xff"} {
		for _, attempts := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("%q,%d", character, attempts), func(t *testing.T) {
				t.Parallel()
				testRecordFits(t, largeRecord(id, character, attempts))
			})
		}
	}
}

func testRecordFits(t *testing.T, r *job.Record) {
	attempts := r.Partitions[0].AttemptCount()
	data, err := encode(r)
	if err != nil {
		t.Fatal(err)
	}
	back, err := decode(r.ID, data)
	if err != nil {
		t.Fatal(err)
	}
	p := &back.Partitions[job.PartitionsMax-1]
	if p.AttemptCount() != attempts || len(r.Partitions[0].Attempts) > 0 && (p.Last() == nil || p.Last().Fault == nil) {
		t.Fatalf("%d attempts instead of %d, last %+v", p.AttemptCount(), attempts, p.Last())
	}
	// With what is known of running partitions, it is an answer that a message carries.
	reply := &wire.StatusReply{Record: back}
	for i := range back.Partitions {
		reply.Live = append(reply.Live, wire.Live{Partition: i, BeatAt: back.SubmittedAt, Progress: math.MaxUint64})
	}
	if _, err := wire.Encode(reply); err != nil {
		t.Fatal(err)
	}
}
