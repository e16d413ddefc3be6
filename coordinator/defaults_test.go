package coordinator

import (
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/bytesize"
)

func misfits(change func(*Config)) string {
	c := DefaultConfig()
	change(&c)
	keep := c.store()
	return strings.Join(keep.Misfits(c.Intake.LiveJobsMax), "; ")
}

// What is kept by default has room in the default buckets; what has none is named.
func TestDefaultSizesFitEachOther(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*Config)
		names  string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.Keep.AuditCount = 100_000 }, "audit_count"},
		{func(c *Config) { c.Streams.JobBytes = 512 * bytesize.MiB }, "audit_count"},
		{func(c *Config) { c.Keep.RetentionCount = 100_000 }, "retention_count"},
		{func(c *Config) { c.Intake.LiveJobsMax = 100_000 }, "live_jobs_max"},
		{func(c *Config) { c.Streams.ProofBytes = 32 * bytesize.MiB }, "proof_bytes"},
	} {
		got := misfits(c.change)
		if c.names == "" && got != "" || !strings.Contains(got, c.names) {
			t.Errorf("misfits %q, want one about %q", got, c.names)
		}
	}
}

// What the default streams set aside is what their comment, and deploy/nats/server.conf, say.
func TestDefaultStreamsSetAsideWhatIsSaid(t *testing.T) {
	t.Parallel()
	sum := func(tenants ...string) (bytes bytesize.Bytes) {
		c := DefaultStreams()
		c.Tenants = tenants
		topology := c.Topology()
		for _, s := range topology.Streams {
			bytes += s.BytesMax
		}
		for _, b := range topology.Buckets {
			bytes += b.BytesMax
		}
		for _, o := range topology.Objects {
			bytes += o.BytesMax
		}
		return bytes
	}
	one := sum("main")
	if gib := float64(one) / float64(bytesize.GiB); gib < 9.4 || gib > 9.55 {
		t.Errorf("one tenant: %.2f GiB, said are 9.5", gib)
	}
	if gib := float64(sum("main", "b")-one) / float64(bytesize.GiB); gib < 4.05 || gib > 4.15 {
		t.Errorf("each further tenant: %.2f GiB, said are 4.1", gib)
	}
	if c := DefaultStreams(); c.SliceBytes/11_000_000 < 385 || c.SliceBytes/11_000_000 > 395 {
		t.Errorf("slices of %d sectors, said are 390", c.SliceBytes/11_000_000)
	}
}
