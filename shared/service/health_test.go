package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/service"
)

func TestReadinessNamesWhatDoesNotHold(t *testing.T) {
	t.Parallel()
	h := service.NewHealth()
	h.Ready("nats", func(context.Context) error { return nil })
	h.Ready("params", func(context.Context) error { return errors.New("v28-x.params is missing") })
	h.Live("loop", func(context.Context) error { return nil })
	h.Set("drain", errors.New("cordoned by operator"))
	want := service.State{Checks: []service.Answer{
		{Name: "drain", Reason: "cordoned by operator"}, {Name: "loop", OK: true}, {Name: "nats", OK: true},
		{Name: "params", Reason: "v28-x.params is missing"},
	}}
	got := h.Readiness(t.Context())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if text := got.Reason(); text != "drain: cordoned by operator; params: v28-x.params is missing" {
		t.Error(text)
	}
	if got := h.Liveness(t.Context()); !got.OK || len(got.Checks) != 1 {
		t.Errorf("%+v", got)
	}
	h.Set("drain", nil)
	h.Ready("params", func(context.Context) error { return nil })
	if got := h.Readiness(t.Context()); !got.OK || got.Reason() != "" {
		t.Errorf("%+v", got)
	}
	h.Live("loop", func(context.Context) error { return errors.New("stuck for 3m") })
	if got := h.Liveness(t.Context()); got.OK {
		t.Errorf("%+v", got)
	}
}

func TestAHangingCheckCostsOneGoroutineAndNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		release := make(chan struct{})
		h := service.NewHealth()
		h.Ready("redis", func(context.Context) error {
			calls.Add(1)
			<-release // deaf to its context
			return nil
		})
		h.Ready("nats", func(context.Context) error { return nil })
		for i := range 5 {
			begun := time.Now()
			got := h.Readiness(t.Context())
			if took := time.Since(begun); took > service.CheckWithin {
				t.Errorf("answered after %s", took)
			}
			want := fmt.Sprintf("redis: no answer for %s", time.Duration(i+1)*service.CheckWithin)
			if got.OK || got.Reason() != want {
				t.Errorf("%q, want %q", got.Reason(), want)
			}
		}
		if calls.Load() != 1 {
			t.Errorf("%d calls of a check that hangs", calls.Load())
		}
		close(release)
		synctest.Wait()
		if got := h.Readiness(t.Context()); !got.OK || calls.Load() != 2 {
			t.Errorf("after it came back: %+v, %d calls", got, calls.Load())
		}
	})
}

func TestHealthOverHTTP(t *testing.T) {
	t.Parallel()
	h := service.NewHealth()
	release := make(chan struct{})
	h.Ready("redis", func(context.Context) error { <-release; return nil })
	defer close(release)
	mux := http.NewServeMux()
	h.Mount(mux)
	bound := make(chan net.Addr, 1)
	c := service.NewControl()
	ended := make(chan error)
	go func() {
		ended <- service.NewGroup(config(), zerolog.Nop(), h).Run(service.With(t.Context(), c),
			service.HTTP(service.DefaultHTTPConfig(), mux, func(a net.Addr) { bound <- a }))
	}()
	address := (<-bound).String()
	client := &http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	get := func(path string) (int, service.State, time.Duration) {
		begun := time.Now()
		resp, err := client.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		var s service.State
		if resp.StatusCode != http.StatusNotFound && json.Unmarshal(body, &s) != nil {
			t.Errorf("%s: %s", path, body)
		}
		return resp.StatusCode, s, time.Since(begun)
	}
	if code, s, _ := get("/livez"); code != http.StatusOK || !s.OK {
		t.Errorf("livez: %d %+v", code, s)
	}
	// Twice: the second asks while the first call still hangs.
	for range 2 {
		if code, s, took := get("/readyz"); code != http.StatusServiceUnavailable || s.OK || took > 20*time.Second {
			t.Errorf("readyz: %d %+v after %s", code, s, took)
		}
	}
	if code, _, _ := get("/"); code != http.StatusNotFound {
		t.Errorf("/: %d", code)
	}
	resp, err := client.Post("http://"+address+"/readyz", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", resp.StatusCode)
	}
	c.Stop(service.Drain, "test")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := client.Get("http://" + address + "/livez"); err == nil {
		t.Error("still serving")
	}
}

func TestHTTPThatCannotListenSaysWhere(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	run := func(listen string) error {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if listen == "" {
				cancel() // nothing is served, so only this ends it
			}
		}()
		defer cancel()
		return service.NewGroup(config(), zerolog.Nop(), nil).
			Run(ctx, service.HTTP(service.HTTPConfig{Listen: listen}, http.NewServeMux(), nil))
	}
	if err := run(address); err == nil || len(err.Error()) < len(address) {
		t.Errorf("%v", err)
	}
	if err := run(""); err != nil {
		t.Errorf("turned off: %v", err)
	}
}
