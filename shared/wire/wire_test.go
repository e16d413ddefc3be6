package wire_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

const id = job.ID("01890a5d-ac96-774b-bcce-b302099a8057")

var (
	at      = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	attempt = job.Attempt{Job: id, Partition: 3, Fence: 7}
	digest  = strings.Repeat("ab", 32)
	number  = uint64(4243)
	index   = 3
)

// bodies has one full example of every body.
func bodies() map[string]wire.Body {
	amounts := ledger.Amounts{"ram": 300 << 20, "shm": 254 << 20}
	failure := &fault.Report{Kind: fault.Device, Stage: "prove", Message: "device is lost", Hint: "look at the card"}
	return map[string]wire.Body{
		"synth_task": &wire.SynthTask{
			Attempt: attempt, Node: "n1", Device: "gpu0", Circuit: "porep-32GiB",
			Slice:   job.Object{Name: wire.SliceName(id, 3), Bytes: 1 << 20, SHA256: digest},
			Amounts: amounts, Priority: 5, Deadline: &at, TraceParent: "00-" + strings.Repeat("1", 32) + "-2222222222222222-01",
			SynthTaskSince2: wire.SynthTaskSince2{TestMarker: "kill"},
		},
		"prove_task": &wire.ProveTask{
			Attempt: attempt, Node: "n1", Device: "gpu0", Circuit: "porep-32GiB", Segment: attempt.String(),
			Handoff: wire.HandoffSHM, Amounts: amounts, HandoffReason: "no room in memory",
			ProveTaskSince2: wire.Took(map[string]float64{"synthesize": 0.75}),
		},
		"result_ok": &wire.Result{
			Attempt: attempt, Node: "n1", Device: "gpu0", Outcome: job.OutcomeOK, Proof: bytes.Repeat([]byte{9}, 192),
			Build: "v1", DeviceUUID: "GPU-1", ParamsDigest: digest, Handoff: wire.HandoffDisk,
			HandoffReason: "no room in memory",
		},
		"result_failed": &wire.Result{
			Attempt: attempt, Node: "n1", Outcome: job.OutcomeFailed, Fault: failure, BlameDevice: true,
		},
		"report": &wire.Report{
			Attempt: attempt, Node: "n1", Stage: job.Sealed, Keeps: ledger.Amounts{"shm": 1}, Freed: true, Handoff: "shm",
			HandoffReason: "r",
		},
		"beat": &wire.Beat{
			Node: "n1", Boot: "boot", Instance: "inst", Role: wire.RoleGPU, Seq: 9, Build: "v1", WireMin: 1, WireMax: 2,
			State: wire.StateNotReady, Reason: "no parameters", Slots: 2, CPUs: 8,
			HeartbeatMS: 5000,
			Running: []wire.Running{{
				Attempt: attempt, Stage: job.Proving, Progress: 77, Handoff: "shm", HandoffReason: "r",
			}},
			Devices: []wire.DeviceState{{
				Device: "gpu0", UUID: "GPU-1", Name: "sim", NUMANode: 1, Healthy: true, Pending: 1,
				Circuits: []wire.DeviceCircuit{{
					Circuit: "toy", Ready: true, ParamsDigest: digest, SRSBytes: 1, ArtifactBytes: 2, SharedBytes: 3,
					PendingBytes: 4, WorkingBytes: 5, DeviceBytes: 6,
				}},
				Canary: &wire.Canary{ID: "c1", Reason: "wrong answer"},
			}},
			Synth: []wire.SynthCircuit{{Circuit: "toy", SegmentBytes: 1 << 20, ScratchBytes: 2 << 20, ArtifactBytes: 3}},
			Host: &wire.HostReport{
				Capacity: amounts, BookComplete: true, FreeSHMBytes: 4096, FreeDiskBytes: 8192, At: at,
				Book:  []wire.Booking{{Attempt: attempt, Amounts: amounts, Stage: job.Proving, Alive: true}},
				Freed: []job.Attempt{attempt},
			},
			Flight: []flight.Report{{
				Process: "gpu", LiveBytes: 1, HighBytes: 2, Pending: 3, Waiting: 4, RSSBytes: 5, BeyondBytes: 6, Defects: 7,
				Defect: "twice", Classes: []flight.ClassReport{{
					Class: ledger.ClassAssignment, Live: []flight.StageCount{{Stage: flight.Mapped, Pieces: 1, Bytes: 2}},
					Pieces: 1, Bytes: 2, KeptPieces: 3, KeptBytes: 4, HighPieces: 5, HighBytes: 6, GonePieces: 7, GoneBytes: 8,
					Lag: []uint64{0, 1, 0, 0, 0, 0, 0}, Oldest: []flight.Piece{{
						Label: attempt.String(), Stage: flight.Mapped, Bytes: 2, Asset: true, AgeMS: 3, ReleasedMS: 4,
					}},
				}},
			}},
		},
		"control":        &wire.Control{Node: "n1", Kind: wire.ControlCancel, Attempt: &attempt, Reason: "cancelled"},
		"control_canary": &wire.Control{Node: "n1", Kind: wire.ControlCanary, Device: "gpu0", Canary: "c1"},
		"submit": &wire.Submit{
			Tenant: "main", Key: "k", Kind: "porep", Miner: "f01000", SectorNumber: &number, Priority: -5, Deadline: &at,
			Output: job.OutputPartitions, WaitForNode: true, Object: &job.Object{Name: "c1", Bytes: 5, SHA256: digest},
		},
		"submit_reply": &wire.SubmitReply{Job: id, Existing: true, State: job.Active, Warnings: []string{"w"}},
		"refusal":      &wire.SubmitReply{Reply: wire.Reply{Fault: failure}},
		"job_request":  &wire.JobRequest{Job: id, Reason: "not needed"},
		"jobs_request": &wire.JobsRequest{State: job.Done, Before: id, Limit: 10},
		"why_reply": &wire.WhyReply{State: job.Active, Reasons: []wire.Reason{{
			Partitions: []int{1, 2}, Text: "t", Node: "n1", Pool: "ram", Missing: 5, Until: &at,
			Holders: []wire.Holder{{Name: attempt.String(), Bytes: 7, Since: &at}},
		}}},
		"drain_request":   &wire.DrainRequest{Node: "n1", Undo: true, Cordon: true},
		"flight_request":  &wire.FlightRequest{Node: "n1"},
		"release_request": &wire.ReleaseRequest{Node: "n1", Device: "gpu0"},
		"forget_request":  &wire.ForgetRequest{Node: "n1", Gone: true, Reason: "burnt down"},
		"unbook_request":  &wire.UnbookRequest{Node: "n1", Attempt: attempt, Gone: true, Reason: "seen by eye"},
		"forget_reply": &wire.ForgetReply{Forgotten: wire.Forgotten{
			Node: "n1", At: at, Reason: "burnt down", Attempts: []job.Attempt{attempt}, Held: amounts,
		}},
		"intake_request": &wire.IntakeRequest{Pause: true, Reason: "maintenance"},
		"dlq_request":    &wire.DLQRequest{Job: id, Replay: true},
		"dead_letter":    &wire.DeadLetter{Job: id, Tenant: "main", Circuit: "toy", At: at, Fault: failure},
		"dlq_page":       &wire.DLQRequest{After: id},
		"page_request":   &wire.PageRequest{After: "n1/" + attempt.String()},
		"audit_request":  &wire.AuditRequest{Since: &at, After: id, Limit: 5},
		"event": &wire.Event{
			Job: id, Tenant: "main", What: wire.EventPartition, At: at, State: job.Active, Partition: &index,
			Stage: job.Verified, Node: "n1", Device: "gpu0", Verified: 4, Fault: failure,
		},
	}
}

func TestBodiesAreWhatTheyWere(t *testing.T) {
	t.Parallel()
	for name, body := range bodies() {
		data, err := wire.Encode(body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, data, "", "  "); err != nil {
			t.Fatal(err)
		}
		pretty.WriteByte('\n')
		path := filepath.Join("testdata", name+".json")
		if *rewrite {
			if err := os.WriteFile(path, pretty.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), pretty.String()); diff != "" {
			t.Errorf("%s changed on the wire; a new field needs a new version (-rewrite writes it):\n%s", name, diff)
		}
		back := emptyLike(body)
		if err := wire.Decode(data, back); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(body, back, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s comes back changed: %s", name, diff)
		}
	}
}

func emptyLike(body wire.Body) wire.Body {
	return reflect.New(reflect.TypeOf(body).Elem()).Interface().(wire.Body)
}

func TestVersionsOutsideTheRangeAreRefused(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		`{"v":1,"job_id":"` + string(id) + `"}`:                     true,
		`{"v":2,"job_id":"` + string(id) + `","field_of_later":{}}`: true,
		`{"v":3,"job_id":"` + string(id) + `"}`:                     false,
		`{"v":3,"v_min":3,"job_id":"` + string(id) + `"}`:           false,
		`{"v":3,"v_min":2,"job_id":"` + string(id) + `"}`:           true,
		`{"v":9,"v_min":1,"job_id":"` + string(id) + `"}`:           true,
		`{"v":3,"v_min":0,"job_id":"` + string(id) + `"}`:           false,
		`{"v":3,"v_min":-2,"job_id":"` + string(id) + `"}`:          false,
		`{"v":1,"v_min":2,"job_id":"` + string(id) + `"}`:           true,
		`{"v":0,"v_min":1,"job_id":"` + string(id) + `"}`:           false,
		`{"v":0,"job_id":"` + string(id) + `"}`:                     false,
		`{"job_id":"` + string(id) + `"}`:                           false,
		`{"v":"1","job_id":"` + string(id) + `"}`:                   false,
		`{"v":1,"job_id":"x"}`:                                      false,
		`{"v":1`:                                                    false,
		`null`:                                                      false,
		`[]`:                                                        false,
		``:                                                          false,
	} {
		var r wire.JobRequest
		err := wire.Decode([]byte(text), &r)
		if (err == nil) != ok || err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v (%s)", text, err, fault.KindOf(err))
		}
	}
}

// A beat is read in any version, since it says which versions its sender reads.
func TestBeatsAreReadInAnyVersion(t *testing.T) {
	t.Parallel()
	beat := *bodies()["beat"].(*wire.Beat)
	beat.WireMin, beat.WireMax = 7, 9
	fields, err := json.Marshal(beat)
	if err != nil {
		t.Fatal(err)
	}
	for head, ok := range map[string]bool{
		`{"v":9,"v_min":7,`: true, `{"v":2,`: true, `{"v":0,`: false, `{`: false, `{"v":"9",`: false,
	} {
		var got wire.Beat
		err := wire.DecodeBeat(append([]byte(head), fields[1:]...), &got)
		if (err == nil) != ok || err != nil && fault.KindOf(err) != fault.Invalid || ok && !cmp.Equal(got, beat) {
			t.Errorf("%s: %v", head, err)
		}
	}
	beat.Node = "../n"
	if fields, err = json.Marshal(beat); err != nil {
		t.Fatal(err)
	}
	if err := wire.DecodeBeat(append([]byte(`{"v":2,`), fields[1:]...), &wire.Beat{}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a path as node: %v", err)
	}
}

func TestBodiesThatNoSenderWritesAreRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	for name, body := range map[string]wire.Body{
		"proof of 191 bytes": &wire.Result{
			Attempt: attempt, Node: "n", Outcome: job.OutcomeOK, Proof: make([]byte, 191),
		},
		"failure without a reason": &wire.Result{Attempt: attempt, Node: "n", Outcome: job.OutcomeFailed},
		"unknown outcome":          &wire.Result{Attempt: attempt, Node: "n", Outcome: "great"},
		"no fence":                 &wire.Report{Attempt: job.Attempt{Job: id}, Node: "n"},
		"a path as node":           &wire.Report{Attempt: attempt, Node: "../n"},
		"two inputs":               &wire.Submit{Miner: "1", Inline: []byte("x"), Path: "/x", SHA256: digest},
		"no input":                 &wire.Submit{Miner: "1"},
		"reference without digest": &wire.Submit{Miner: "1", URL: "http://x"},
		"endless name":             &wire.Submit{Miner: "1", Object: &job.Object{Name: long, SHA256: digest}},
		"inline over its door":     &wire.Submit{Miner: "1", Inline: make([]byte, wire.InlineBytesMax+1)},
		"object over its door": &wire.Submit{
			Miner: "1", Object: &job.Object{Name: "x", Bytes: wire.ReferenceBytesMax + 1, SHA256: digest},
		},
		"priority":              &wire.Submit{Miner: "1", Inline: []byte("x"), Priority: 101},
		"key with escape codes": &wire.Submit{Miner: "1", Inline: []byte("x"), Key: "\x1b[31m"},
		"canary without an id":  &wire.Control{Node: "n", Kind: wire.ControlCanary, Device: "gpu0"},
		"beats once a week": &wire.Beat{
			Node: "n", Boot: "b", Instance: "i", Role: wire.RoleGPU, State: wire.StateReady, WireMin: 1, WireMax: 2,
			HeartbeatMS: wire.HeartbeatMSMax + 1,
		},
		"cancel without an attempt": &wire.Control{Node: "n", Kind: wire.ControlCancel},
		"page too long":             &wire.JobsRequest{Limit: 501},
		"jobs of no state":          &wire.JobsRequest{State: "acitve"},
	} {
		if _, err := wire.Encode(body); fault.KindOf(err) != fault.Invalid && err == nil {
			t.Errorf("%s is encoded", name)
		}
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		raw = append([]byte(`{"v":1,`), raw[1:]...)
		if err := wire.Decode(raw, emptyLike(body)); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSubjectsHoldOneName(t *testing.T) {
	t.Parallel()
	subject := wire.EventSubject("t1", id, wire.EventDone)
	if wire.Token(subject, 2) != "t1" || wire.Token(subject, 3) != string(id) || wire.Token(subject, 9) != "" {
		t.Errorf("tokens of %s", subject)
	}
	a, b := wire.IdempotencyKey("t1", "a.b *>"), wire.IdempotencyKey("t1", "a.b *")
	if a == b || strings.ContainsAny(a, " *>") {
		t.Errorf("%s, %s", a, b)
	}
}

func FuzzDecode(f *testing.F) {
	for _, body := range bodies() {
		data, _ := wire.Encode(body)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, body := range bodies() {
			empty := emptyLike(body)
			if err := wire.Decode(data, empty); err == nil {
				if _, err := wire.Encode(empty); err != nil {
					t.Errorf("%T was read and cannot be written: %v", empty, err)
				}
			}
		}
	})
}

func TestPublicInputsComeBack(t *testing.T) {
	t.Parallel()
	var one, two fr.Element
	one.SetOne()
	two.SetString("52435875175126190479447740508185965837690552500527637822603658699938581184512")
	data := wire.AppendPublicInputs(wire.AppendPublicInputs(nil, []fr.Element{one, two}), []fr.Element{two, one})
	got, err := wire.ParsePublicInputs(data, 2)
	if err != nil || !got[0][1].Equal(&two) || !got[1][1].Equal(&one) {
		t.Errorf("%v, %v", got, err)
	}
	for name, bad := range map[string][]byte{
		"cut": data[:len(data)-1], "not canonical": bytes.Repeat([]byte{0xff}, 64),
	} {
		if _, err := wire.ParsePublicInputs(bad, 2); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A host report of version 1 had one number for all free segments; it is taken as it was, as memory.
func TestFreeSegmentsOfVersion1AreRead(t *testing.T) {
	t.Parallel()
	data := []byte(`{"v":1,"node":"n1","boot":"b","instance":"i","role":"gpu","seq":1,"wire_min":1,"wire_max":1,` +
		`"state":"ready","host":{"capacity":{},"book_complete":true,"free_segment_bytes":"4KiB",` +
		`"at":"2026-01-02T03:04:05Z"}}`)
	var b wire.Beat
	if err := wire.Decode(data, &b); err != nil {
		t.Fatal(err)
	}
	if b.Host.FreeSHMBytes != 4096 || b.Host.FreeDiskBytes != 0 {
		t.Errorf("in memory %s, on disk %s", b.Host.FreeSHMBytes, b.Host.FreeDiskBytes)
	}
}

// A beat of a later build counts although this one does not understand what it says of its buffers.
func TestBeatsWithBuffersOfALaterBuildAreRead(t *testing.T) {
	t.Parallel()
	data, err := wire.Encode(bodies()["beat"])
	if err != nil {
		t.Fatal(err)
	}
	for old, later := range map[string]string{
		`"stage":"mapped"`: `"stage":"melted"`, `"class":"assignment"`: `"class":"other"`,
	} {
		var b wire.Beat
		if err := wire.DecodeBeat(bytes.ReplaceAll(data, []byte(old), []byte(later)), &b); err != nil {
			t.Errorf("%s: %v", later, err)
		}
		if len(b.Flight) != 0 || b.Seq != 9 {
			t.Errorf("%s: %+v", later, b)
		}
	}
}
