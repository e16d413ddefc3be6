package coordinator_test

import (
	"strings"
	"testing"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/config"
	"github.com/proofrack/proofrack/shared/wire"
)

func TestEveryKeyIsDocumentedAndTheDefaultsHold(t *testing.T) {
	t.Parallel()
	c := coordinator.DefaultConfig()
	if got := config.Undocumented(&c); len(got) != 0 {
		t.Errorf("keys without a meaning: %v", got)
	}
	if _, err := config.Load(&c, config.Sources{}); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

func TestConfigRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for _, set := range []string{
		"params.dir=", "times.lease=5s", "times.heartbeat=0s", "times.tick=0s", "times.leader_lease=1ms", "times.call=0s",
		"attempts.failed_max=0", "attempts.lost_max=0", "attempts.hand_back_pause=-1s", "schedule.ageing=0s",
		"schedule.patience=-1s", "schedule.quota_partitions={main=-1}", "schedule.quota_bytes={UPPER='1GiB'}",
		"schedule.device_partitions_max=0", "schedule.quarantine_after=0", "keep.retention=0s", "keep.retention_count=0",
		"keep.key_grace=0s", "keep.audit_count=0", "streams.tenants=UPPER", "streams.replicas=2", "streams.queue_bytes=1KiB",
		"streams.event_age=0s",
		"memory.margin=-0.1", "memory.drift_max=11", "memory.slack=-1B", "memory.store_every=0s",
		"ledger.cert_file=/a", "nats.key_file=/a",
	} {
		c := coordinator.DefaultConfig()
		_, err := config.Load(&c, config.Sources{Set: []string{set}})
		if err == nil {
			t.Errorf("%s passes", set)
		} else if strings.Contains(err.Error(), "unknown key") {
			t.Errorf("%s shows nothing: %v", set, err)
		}
	}
}

// The topology is the table of design section 2: every stream and bucket that messages and records name.
func TestTopologyIsTheTable(t *testing.T) {
	t.Parallel()
	c := coordinator.DefaultStreams()
	c.Tenants = []string{"main", "other"}
	topology := c.Topology()
	if err := topology.Validate(); err != nil {
		t.Fatal(err)
	}
	streams := map[string]bus.Retention{}
	for _, s := range topology.Streams {
		streams[s.Name] = s.Retention
		if s.BytesMax == 0 {
			t.Errorf("stream %s has no bound", s.Name)
		}
	}
	for name, retention := range map[string]bus.Retention{
		wire.StreamSynth: bus.WorkQueue, wire.StreamProve: bus.WorkQueue, wire.StreamResult: bus.WorkQueue,
		wire.StreamEvents: bus.Limits, wire.StreamDLQ: bus.Limits,
	} {
		if streams[name] != retention {
			t.Errorf("stream %s is %q", name, streams[name])
		}
	}
	names := map[string]bool{}
	for _, b := range topology.Buckets {
		names[b.Name] = true
	}
	for _, o := range topology.Objects {
		names[o.Name] = true
	}
	for _, name := range []string{
		wire.BucketJobs, wire.BucketNodes, wire.BucketLead, wire.ObjectsSlices, wire.ObjectsIn("main"),
		wire.ObjectsProofs("main"), wire.ObjectsIn("other"), wire.ObjectsProofs("other"),
	} {
		if !names[name] {
			t.Errorf("bucket %s is missing", name)
		}
	}
}
