package footprint

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseReadsKinds(t *testing.T) {
	t.Parallel()
	const status = "Name:\tproofrack\nVmHWM:\t    2048 kB\nVmRSS:\t    1000 kB\n" +
		"RssAnon:\t     600 kB\nRssFile:\t     300 kB\n" +
		"RssShmem:\t     100 kB\nThreads:\t8\n"
	now, peak := parse([]byte(status))
	want := Usage{Total: 1000 << 10, Anonymous: 600 << 10, File: 300 << 10, Shared: 100 << 10}
	if diff := cmp.Diff(want, now); diff != "" || peak != 2<<20 {
		t.Fatalf("peak %d, usage (-want +got):\n%s", peak, diff)
	}
}

// TestWatchSeesWhatCameAndWent touches 64 MiB, gives them back and wants them in the peak.
func TestWatchSeesWhatCameAndWent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("resident memory is read from /proc, which only Linux has")
	}
	const size = 64 << 20
	before := Now()
	watch := Start()
	block := make([]byte, size)
	for i := range block {
		block[i] = byte(i)
	}
	watch.look()
	runtime.KeepAlive(block)
	peak := watch.Stop()
	if grown := peak.Anonymous - before.Anonymous; grown < size/2 {
		t.Fatalf("anonymous memory grew by %d bytes, want about %d", grown, size)
	}
	if peak.Total < peak.Anonymous || Peak() < peak.Anonymous {
		t.Fatalf("peak %+v, kernel's peak %d: the whole is less than its part", peak, Peak())
	}
}
