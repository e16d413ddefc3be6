package client_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/wire"
)

// sized is a request with an input of so many bytes.
func sized(size int, setupWait time.Duration) client.Request {
	return client.Request{
		Key: "k", Miner: "1000", Input: bytes.NewReader(bytes.Repeat([]byte{7}, size)), SetupWait: setupWait,
	}
}

// Servers without a coordinator: small and large inputs end alike, by their own bound or by the context.
func TestB64NoRackIsQueueNotSetUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size        int
		bound, give time.Duration // SetupWait, and the context's
		want        time.Duration
	}{
		"small":                    {100, 3 * time.Second, time.Hour, 3 * time.Second},
		"large":                    {wire.InlineBytesMax + 1, 3 * time.Second, time.Hour, 3 * time.Second},
		"small, until the context": {100, 0, 3 * time.Second, 3 * time.Second},
		"large, until the context": {wire.InlineBytesMax + 1, 0, 3 * time.Second, 3 * time.Second},
		"less than one pause":      {100, 100 * time.Millisecond, time.Hour, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := membus.New(membus.Config{}).Connect(bus.Events{})
				defer b.Close()
				ctx, cancel := context.WithTimeout(t.Context(), c.give)
				defer cancel()
				begun := time.Now()
				_, err := client.New(b, "t1").Submit(ctx, sized(c.size, c.bound))
				if took := time.Since(begun); took != c.want {
					t.Errorf("ended after %s, not %s", took, c.want)
				}
				report := fault.ReportOf("", err)
				if report == nil || report.Kind != fault.Transient || report.Hint != bus.HintNotSetUp {
					t.Fatalf("%+v", report)
				}
				if !strings.Contains(report.Message, "queue not set up") || strings.ContainsAny(report.Message, "\n\r") ||
					strings.Contains(report.Message, "context") {
					t.Errorf("%q", report.Message)
				}
			})
		})
	}
}

// A rack that comes while a client waits is used.
func TestB64TheRackComesWhileSubmitWaits(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small": 100, "large": wire.InlineBytesMax + 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := membus.New(membus.Config{})
				r, c := newRackOn(t, server)
				go func() {
					time.Sleep(4 * time.Second)
					r.setUp()
					r.serve()
				}()
				s, err := c.Submit(t.Context(), sized(size, 10*time.Second))
				if err != nil || s.Job != id || len(r.inputs[0]) != size {
					t.Errorf("%+v, %v", s, err)
				}
			})
		})
	}
}

// SetupWait bounds the wait for a rack, not the work of one.
func TestSetupWaitDoesNotEndWorkOnARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, c := newRack(t)
		stop, err := r.bus.Serve(bus.Service{Name: "c2", Version: "0.1.0", Endpoints: []bus.Endpoint{{
			Name: "submit", Subject: wire.ClientSubject(wire.VerbSubmit, "t1"),
			Handle: func(ctx context.Context, m bus.Message) (bus.Message, error) {
				time.Sleep(answerSlow)
				return r.submit(ctx, m)
			},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.Submit(ctx, sized(10, time.Second)); err != nil {
			t.Error(err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = c.Submit(ctx, sized(10, time.Second))
		if fault.KindOf(err) != fault.Transient || !strings.Contains(err.Error(), "no answer within 3s") {
			t.Errorf("too slow: %v", err)
		}
		time.Sleep(time.Minute) // the handler ends
	})
}

// answerSlow is longer than the first try waits, and shorter than the second.
const answerSlow = 8 * time.Second

// A bucket that is missing while coordinators answer is not one that is to come.
func TestALargeInputOfATenantThatTheRackDoesNotHave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := newRack(t)
		stop, err := r.bus.Serve(bus.Service{Name: "c2", Version: "0.1.0", Endpoints: []bus.Endpoint{{
			Name: "jobs", Subject: wire.ClientSubject(wire.VerbJobs, "t9"),
			Handle: func(context.Context, bus.Message) (bus.Message, error) { return answer(&wire.JobsReply{}) },
		}}})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		begun := time.Now()
		_, err = client.New(r.bus, "t9").Submit(t.Context(), sized(wire.InlineBytesMax+1, time.Minute))
		if report := fault.ReportOf("", err); report == nil || report.Kind != fault.NotFound ||
			!strings.Contains(report.Message, "no tenant t9") || !strings.Contains(report.Hint, "streams.tenants") {
			t.Errorf("%+v", report)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// An interrupt is told from a time that is over, whatever the request was doing.
func TestAnInterruptIsNoAbsentRack(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small": 100, "large": wire.InlineBytesMax + 1} {
		for _, after := range []time.Duration{0, 1200 * time.Millisecond} {
			t.Run(name+" "+after.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := membus.New(membus.Config{}).Connect(bus.Events{})
					defer b.Close()
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(after, cancel)
					synctest.Wait()
					_, err := client.New(b, "t1").Submit(ctx, sized(size, time.Minute))
					if fault.KindOf(err) != fault.Cancelled {
						t.Errorf("%v", err)
					}
				})
			})
		}
	}
}
