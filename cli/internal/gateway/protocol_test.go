package gateway

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/proto"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/job"
)

// field is one field of a message made by hand from the numbers of the protocol: a varint for numbers, length and
// bytes for everything else. Nothing generated is used.
type field struct {
	number int
	value  any // uint64, string, []byte or []field
}

func handMade(fields ...field) []byte {
	var out []byte
	varint := func(v uint64) {
		for ; v >= 0x80; v >>= 7 {
			out = append(out, byte(v)|0x80)
		}
		out = append(out, byte(v))
	}
	for _, f := range fields {
		var content []byte
		switch v := f.value.(type) {
		case int:
			varint(uint64(f.number) << 3)
			varint(uint64(v))
			continue
		case uint64:
			varint(uint64(f.number) << 3)
			varint(v)
			continue
		case string:
			content = []byte(v)
		case []byte:
			content = v
		case []field:
			content = handMade(v...)
		}
		varint(uint64(f.number)<<3 | 2)
		varint(uint64(len(content)))
		out = append(out, content...)
	}
	return out
}

// goldens are messages with every field of the protocol, by hand and as the generated code has them.
func goldens() map[string]struct {
	bytes   []byte
	message proto.Message
} {
	type golden = struct {
		bytes   []byte
		message proto.Message
	}
	submit := []field{
		{1, "porep-1000-4243"}, {2, 1}, {3, uint64(34359738368)}, {4, 8}, {5, 2}, {10, []byte{1, 2, 3}},
		{11, []byte{4}}, {11, []byte{5, 6}}, {20, 4243}, {21, 1000}, {22, []byte{7}}, {23, 9},
		{30, []byte{10}}, {31, []byte{11}}, {32, []byte{12}},
	}
	submitted := &cuzkv1.SubmitProofRequest{
		RequestId: "porep-1000-4243", ProofKind: 1, SectorSize: 32 << 30, RegisteredProof: 8, Priority: 2,
		VanillaProof: []byte{1, 2, 3}, VanillaProofs: [][]byte{{4}, {5, 6}}, SectorNumber: 4243, MinerId: 1000,
		Randomness: []byte{7}, PartitionIndex: 9, CommROld: []byte{10}, CommRNew: []byte{11}, CommDNew: []byte{12},
	}
	result := []field{
		{
			1,
			"j",
		}, {2, 1}, {3, []byte{1, 2}}, {4, "e"}, {10, 100}, {11, 101}, {12, 102}, {13, 103}, {14, uint64(1 << 40)},
	}
	ended := &cuzkv1.AwaitProofResponse{
		JobId: "j", Status: 1, Proof: []byte{1, 2}, ErrorMessage: "e", QueueWaitMs: 100, SrsLoadMs: 101,
		SynthesisMs: 102, GpuComputeMs: 103, TotalMs: 1 << 40,
	}
	return map[string]golden{
		"submit_request": {handMade(submit...), submitted},
		"submit_response": {
			handMade(field{1, "j"}, field{2, 3}, field{3, "g"}),
			&cuzkv1.SubmitProofResponse{JobId: "j", QueuePosition: 3, AssignedGpu: "g"},
		},
		"await_request": {
			handMade(field{1, "j"}, field{2, 60000}),
			&cuzkv1.AwaitProofRequest{JobId: "j", TimeoutMs: 60000},
		},
		"await_response":  {handMade(result...), ended},
		"prove_request":   {handMade(field{1, submit}), &cuzkv1.ProveRequest{Submit: submitted}},
		"prove_response":  {handMade(field{1, result}), &cuzkv1.ProveResponse{Result: ended}},
		"cancel_request":  {handMade(field{1, "j"}), &cuzkv1.CancelProofRequest{JobId: "j"}},
		"cancel_response": {handMade(field{1, 1}), &cuzkv1.CancelProofResponse{WasRunning: true}},
		"status_response": {
			handMade(
				field{1, []field{{1, 1}, {2, "n"}, {3, 2}, {4, 3}, {5, "j"}, {6, "k"}}},
				field{
					2,
					[]field{{1, "porep-32g"}, {2, 2}, {3, 4}, {4, 5}},
				},
				field{3, []field{{1, "q"}, {2, 6}, {3, 7}}},
				field{4, 8},
				field{5, 9},
				field{6, 10},
				field{7, 11},
				field{8, 12},
			),
			&cuzkv1.GetStatusResponse{
				Gpus: []*cuzkv1.GPUStatus{{
					Ordinal: 1, Name: "n", VramTotalBytes: 2, VramFreeBytes: 3, CurrentJobId: "j", CurrentProofKind: "k",
				}},
				LoadedSrs: []*cuzkv1.SRSStatus{{
					CircuitId: "porep-32g", Tier: cuzkv1.SRSStatus_COLD, SizeBytes: 4, RefCount: 5,
				}},
				Queues:               []*cuzkv1.QueueStatus{{ProofKind: "q", Pending: 6, InProgress: 7}},
				TotalProofsCompleted: 8, TotalProofsFailed: 9, UptimeSeconds: 10, PinnedMemoryBytes: 11,
				PinnedMemoryLimitBytes: 12,
			},
		},
		"metrics_response": {handMade(field{1, "m"}), &cuzkv1.GetMetricsResponse{PrometheusText: "m"}},
		"preload_request":  {handMade(field{1, "c"}), &cuzkv1.PreloadSrsRequest{CircuitId: "c"}},
		"preload_response": {
			handMade(field{1, 1}, field{2, 5}),
			&cuzkv1.PreloadSrsResponse{AlreadyLoaded: true, LoadTimeMs: 5},
		},
		"evict_request": {handMade(field{1, "c"}), &cuzkv1.EvictSrsRequest{CircuitId: "c"}},
		"evict_response": {
			handMade(field{1, 1}, field{2, 5}),
			&cuzkv1.EvictSrsResponse{WasLoaded: true, FreedBytes: 5},
		},
	}
}

// The kept bytes, the hand-made ones and the generated code agree on every field. REWRITE=1 writes the files.
func TestBytesOnTheWire(t *testing.T) {
	t.Parallel()
	for name, g := range goldens() {
		path := filepath.Join("testdata", "golden", name+".hex")
		if os.Getenv("REWRITE") == "1" {
			check(t, os.WriteFile(path, []byte(hex.EncodeToString(g.bytes)+"\n"), 0o600))
		}
		text, err := os.ReadFile(path)
		check(t, err)
		kept, err := hex.DecodeString(strings.TrimSpace(string(text)))
		check(t, err)
		if !bytes.Equal(kept, g.bytes) {
			t.Errorf("%s: kept are %x, made are %x", name, kept, g.bytes)
		}
		encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.message)
		check(t, err)
		if !bytes.Equal(encoded, kept) {
			t.Errorf("%s: generated code writes %x, kept are %x", name, encoded, kept)
		}
		read := g.message.ProtoReflect().New().Interface()
		check(t, proto.Unmarshal(kept, read))
		if !proto.Equal(read, g.message) || len(read.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("%s: generated code reads %v", name, read)
		}
	}
}

// Names of the service, its methods and the enums are what is on the wire, or what is printed.
func TestNamesOnTheWire(t *testing.T) {
	t.Parallel()
	var methods []string
	for _, m := range cuzkv1.ProvingEngine_ServiceDesc.Methods {
		methods = append(methods, m.MethodName)
	}
	if got := cuzkv1.ProvingEngine_ServiceDesc.ServiceName; got != "cuzk.v1.ProvingEngine" {
		t.Error(got)
	}
	want := "SubmitProof AwaitProof Prove CancelProof GetStatus GetMetrics PreloadSRS EvictSRS"
	if got := strings.Join(methods, " "); got != want {
		t.Errorf("methods %s", got)
	}
	for name, number := range map[string]int32{
		"PROOF_KIND_UNSPECIFIED": 0, "POREP_SEAL_COMMIT": 1, "SNAP_DEALS_UPDATE": 2, "WINDOW_POST_PARTITION": 3,
		"WINNING_POST": 4,
	} {
		if got, ok := cuzkv1.ProofKind_value[name]; !ok || got != number {
			t.Errorf("%s is %d", name, got)
		}
	}
	for name, number := range map[string]int32{
		"PRIORITY_UNSPECIFIED": 0, "LOW": 1, "NORMAL": 2, "HIGH": 3, "CRITICAL": 4,
	} {
		if got, ok := cuzkv1.Priority_value[name]; !ok || got != number {
			t.Errorf("%s is %d", name, got)
		}
	}
	for name, number := range map[string]int32{"UNKNOWN": 0, "COMPLETED": 1, "FAILED": 2, "CANCELLED": 3, "TIMEOUT": 4} {
		if got, ok := cuzkv1.AwaitProofResponse_Status_value[name]; !ok || got != number {
			t.Errorf("%s is %d", name, got)
		}
	}
	for name, number := range map[string]int32{"HOT": 0, "WARM": 1, "COLD": 2} {
		if got, ok := cuzkv1.SRSStatus_Tier_value[name]; !ok || got != number {
			t.Errorf("%s is %d", name, got)
		}
	}
}

// rawCodec passes bytes as they are.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }
func (rawCodec) Name() string                       { return "proto" }

var _ encoding.Codec = rawCodec{}

// A client without generated code has a proof made.
func TestClientMadeByHandProves(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	request := handMade(field{1, []field{
		{1, "ps-porep-1000-4243-7"}, {2, 1}, {3, 2048}, {4, 5}, {5, 2},
		{10, envelope(t, sample(t, "2KiB-v1_1"), 2048)}, {20, 4243}, {21, 1000},
	}})
	proved := beside(func() ([]byte, error) {
		var out []byte
		err := g.conn.Invoke(g.ctx(), "/cuzk.v1.ProvingEngine/Prove", &request, &out, grpc.ForceCodec(rawCodec{}))
		return out, err
	})
	id := g.rack.accepted(1)
	g.rack.end(id, job.Done, nil)
	a := <-proved
	check(t, a.err)
	want := handMade(field{1, []field{
		{1, string(id)}, {2, 1}, {3, proofOf(id, 1)}, {10, 1000}, {12, 1500}, {13, 250}, {14, 5000},
	}})
	if !bytes.Equal(a.value, want) {
		t.Errorf("got  %x\nwant %x", a.value, want)
	}
}
