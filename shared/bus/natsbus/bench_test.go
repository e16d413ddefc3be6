package natsbus_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/bytesize"
)

// BenchmarkQueueRoundTrip is what one handing-over costs: publish with an id, fetch, acknowledge.
func BenchmarkQueueRoundTrip(b *testing.B) {
	for _, sync := range []bool{false, true} {
		for _, listen := range []string{"", "127.0.0.1:0"} {
			b.Run(fmt.Sprintf("fsync=%v/tcp=%v/bytes=512", sync, listen != ""), func(b *testing.B) {
				server := embedded(b, func(c *natsbus.EmbeddedConfig) { c.Sync, c.Listen = sync, listen })
				cfg, options := natsbus.DefaultConfig(), natsbus.Options{Embedded: server}
				if listen != "" {
					cfg.URLs, options.Embedded = []string{server.URL()}, nil
				}
				conn := must[*natsbus.Bus](b)(natsbus.Dial(b.Context(), cfg, options))
				defer conn.Close()
				noError(b, conn.Setup(b.Context(), topology))
				q := must[bus.Queue](b)(conn.Queue(b.Context(), consumer))
				var times []time.Duration
				data := make([]byte, 512)
				for i := 0; b.Loop(); i++ {
					begun := time.Now()
					m := bus.Message{Subject: "q.a", ID: fmt.Sprint(i), Data: data}
					must[bool](b)(conn.Publish(b.Context(), m))
					d := must[bus.Delivery](b)(q.Fetch(b.Context()))
					noError(b, d.Ack(b.Context()))
					if d.Message().ID != m.ID {
						b.Fatalf("fetched %s, not %s", d.Message().ID, m.ID)
					}
					times = append(times, time.Since(begun))
				}
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-us")
				b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-us")
			})
		}
	}
}

// BenchmarkKVUpdate is one compare-and-swap of a record.
func BenchmarkKVUpdate(b *testing.B) {
	server := embedded(b, nil)
	conn := dial(b, server, natsbus.DefaultConfig(), bus.Events{})
	noError(b, conn.Setup(b.Context(), topology))
	kv := must[bus.KV](b)(conn.KV(b.Context(), "b"))
	value := make([]byte, 4<<10)
	revision := must[uint64](b)(kv.Create(b.Context(), "k", value))
	for b.Loop() {
		revision = must[uint64](b)(kv.Update(b.Context(), "k", value, revision))
	}
}

// BenchmarkObject is an input of 60 MiB, put and got.
func BenchmarkObject(b *testing.B) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 60<<16)
	for _, sync := range []bool{false, true} {
		server := embedded(b, func(c *natsbus.EmbeddedConfig) { c.Sync, c.StoreMax = sync, 2*bytesize.GiB })
		conn := dial(b, server, natsbus.DefaultConfig(), bus.Events{})
		noError(b, conn.Setup(b.Context(), bus.Topology{Objects: []bus.ObjectBucket{{Name: "o"}}}))
		o := must[bus.Objects](b)(conn.Objects(b.Context(), "o"))
		b.Run(fmt.Sprintf("put/fsync=%v/bytes=60MiB", sync), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				must[bus.ObjectInfo](b)(o.Put(b.Context(), "x", bytes.NewReader(data), nil))
			}
		})
		b.Run(fmt.Sprintf("get/fsync=%v/bytes=60MiB", sync), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				r, _, err := o.Get(b.Context(), "x", 1<<30)
				noError(b, err)
				if n := must[int64](b)(io.Copy(io.Discard, r)); n != int64(len(data)) {
					b.Fatalf("%d bytes", n)
				}
			}
		})
	}
}

// BenchmarkObjectsList is a listing of many small objects, as each sweep makes it.
func BenchmarkObjectsList(b *testing.B) {
	const count = 2000
	server := embedded(b, func(c *natsbus.EmbeddedConfig) { c.Sync, c.Listen = false, "127.0.0.1:0" })
	cfg := natsbus.DefaultConfig()
	cfg.URLs = []string{server.URL()}
	conn := must[*natsbus.Bus](b)(natsbus.Dial(b.Context(), cfg, natsbus.Options{}))
	defer conn.Close()
	noError(b, conn.Setup(b.Context(), topology))
	o := must[bus.Objects](b)(conn.Objects(b.Context(), "o"))
	for i := range count {
		name := fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", i)
		must[bus.ObjectInfo](b)(o.Put(b.Context(), name, strings.NewReader("x"), nil))
	}
	for b.Loop() {
		if list := must[[]bus.ObjectInfo](b)(o.List(b.Context())); len(list) != count {
			b.Fatalf("%d objects", len(list))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*count), "us/object")
}
