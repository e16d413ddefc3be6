package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/service"
)

// modeVariable makes the test binary play a program; see TestSignalsOfARealProcess.
const modeVariable = "SERVICE_TEST_MODE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVariable); mode != "" {
		os.Exit(program(mode))
	}
	goleak.VerifyTestMain(m)
}

// tape keeps what happened in order.
type tape struct {
	mu    sync.Mutex
	lines []string
}

func (r *tape) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *tape) want(t *testing.T, lines ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff(lines, r.lines); diff != "" {
		t.Error(diff)
	}
}

func config() service.Config {
	return service.Config{
		StartWithin: time.Minute, DrainWithin: 10 * time.Minute, HandBackWithin: 10 * time.Second,
		KillWithin: 2 * time.Second,
	}
}

// worker finishes its work for a time after it was asked to stop, unless it is to hand it back.
func worker(r *tape, name string, start, finish time.Duration) service.Service {
	return service.Service{Name: name, Run: func(ctx context.Context, c *service.Control) error {
		time.Sleep(start)
		r.note("%s ready", name)
		c.Ready()
		<-c.Stopping()
		r.note("%s stopping", name)
		select {
		case <-time.After(finish):
			r.note("%s finished", name)
		case <-c.HandingBack():
			r.note("%s handed back", name)
		case <-ctx.Done():
			r.note("%s killed", name)
		}
		return nil
	}}
}

func TestServicesStartInOrderAndStopInReverse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r tape
		c := service.NewControl()
		health := service.NewHealth()
		group := service.NewGroup(config(), zerolog.Nop(), health)
		ended := make(chan error)
		go func() {
			ended <- group.Run(service.With(t.Context(), c), worker(&r, "bus", 3*time.Second, 0),
				worker(&r, "book", 0, time.Second), worker(&r, "loop", time.Second, time.Minute))
		}()
		time.Sleep(2 * time.Second)
		if s := health.Readiness(t.Context()); s.OK || s.Reason() != "services: starting" {
			t.Errorf("while starting: %+v", s)
		}
		time.Sleep(3 * time.Second)
		if s := health.Readiness(t.Context()); !s.OK {
			t.Errorf("when started: %+v", s)
		}
		c.Stop(service.Drain, "SIGTERM")
		synctest.Wait()
		if s := health.Readiness(t.Context()); s.OK || s.Reason() != "services: stopping (drain): SIGTERM" {
			t.Errorf("while stopping: %+v", s)
		}
		before := time.Now()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(before); took != 61*time.Second {
			t.Errorf("drained in %s", took)
		}
		r.want(t, "bus ready", "book ready", "loop ready", "loop stopping", "loop finished", "book stopping",
			"book finished", "bus stopping", "bus finished")
	})
}

func TestHowUrgentTheEndIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stop  func(c *service.Control)
		took  time.Duration
		lines []string
	}{
		"second signal hands back": {
			func(c *service.Control) {
				c.Stop(service.Drain, "SIGTERM")
				time.Sleep(time.Second)
				c.Stop(service.HandBack, "SIGTERM")
			}, time.Second,
			[]string{"a ready", "b ready", "b stopping", "b handed back", "a stopping", "a handed back"},
		},
		"reclaim hands back at once": {
			func(c *service.Control) { c.Stop(service.HandBack, "SIGUSR1") }, 0,
			[]string{"a ready", "b ready", "b stopping", "b handed back", "a stopping", "a handed back"},
		},
		"drain time over hands back": {
			func(c *service.Control) { c.Stop(service.Drain, "SIGTERM") }, 10 * time.Minute,
			[]string{"a ready", "b ready", "b stopping", "b handed back", "a stopping", "a handed back"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var r tape
				control := service.NewControl()
				group := service.NewGroup(config(), zerolog.Nop(), nil)
				ended := make(chan error)
				go func() {
					ended <- group.Run(service.With(t.Context(), control), worker(&r, "a", 0, time.Hour),
						worker(&r, "b", 0, time.Hour))
				}()
				synctest.Wait()
				before := time.Now()
				c.stop(control)
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if took := time.Since(before); took != c.took {
					t.Errorf("ended after %s, want %s", took, c.took)
				}
				r.want(t, c.lines...)
			})
		})
	}
}

func TestAServiceThatDoesNotStopIsLeftBehindWithItsName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := service.Service{Name: "deaf", Run: func(_ context.Context, c *service.Control) error {
			c.Ready()
			<-release
			return nil
		}}
		var r tape
		group := service.NewGroup(config(), zerolog.Nop(), nil)
		ended := make(chan error)
		go func() { ended <- group.Run(t.Context(), worker(&r, "good", 0, time.Second), deaf) }()
		synctest.Wait()
		before := time.Now()
		group.Stop(service.HandBack, "test")
		err := <-ended
		if err == nil || !strings.Contains(err.Error(), "service deaf did not stop in time") {
			t.Errorf("%v", err)
		}
		if took := time.Since(before); took != 12*time.Second {
			t.Errorf("left after %s", took)
		}
		if got := strings.Join(r.lines[:2], ", "); got != "good ready, good stopping" || len(r.lines) != 3 {
			t.Errorf("%q", r.lines)
		}
		close(release)
	})
}

func TestAServiceThatEndsUnaskedEndsTheGroup(t *testing.T) {
	t.Parallel()
	broken := fault.New(fault.Corrupt, "book is garbled")
	for name, c := range map[string]struct {
		result error
		early  bool
		want   string
		kind   fault.Kind
	}{
		"error":              {broken, false, "service loop: book is garbled", fault.Corrupt},
		"nothing":            {nil, false, "service loop ended by itself", fault.Internal},
		"error before ready": {broken, true, "service loop: book is garbled", fault.Corrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var r tape
				loop := service.Service{Name: "loop", Run: func(_ context.Context, control *service.Control) error {
					if !c.early {
						control.Ready()
					}
					time.Sleep(time.Second)
					return c.result
				}}
				var log bytes.Buffer
				err := service.NewGroup(config(), zerolog.New(&log), nil).
					Run(t.Context(), worker(&r, "bus", 0, time.Hour), loop)
				if err == nil || err.Error() != c.want || fault.KindOf(err) != c.kind {
					t.Errorf("%v (%s)", err, fault.KindOf(err))
				}
				// Level HandBack: nothing waits for an hour.
				r.want(t, "bus ready", "bus stopping", "bus handed back")
				if n := strings.Count(log.String(), `"level":"error"`); n != 1 {
					t.Errorf("%d error lines:\n%s", n, log.String())
				}
			})
		})
	}
}

func TestAStartThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r tape
		hang := service.Resource("hang", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, func(context.Context) error { panic("never started") })
		err := service.NewGroup(config(), zerolog.Nop(), nil).
			Run(t.Context(), worker(&r, "bus", 0, 0), hang, worker(&r, "never", 0, 0))
		if err == nil || err.Error() != "start service hang: not ready within 1m0s" {
			t.Errorf("%v", err)
		}
		if len(r.lines) == 0 || strings.Contains(strings.Join(r.lines, " "), "never") {
			t.Errorf("%q", r.lines)
		}
	})
}

func TestAStopDuringTheStartEndsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		connect := service.Resource("connect", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, nil)
		c := service.NewControl()
		go func() {
			time.Sleep(time.Second)
			c.Stop(service.Drain, "SIGTERM")
		}()
		before := time.Now()
		err := service.NewGroup(config(), zerolog.Nop(), nil).Run(service.With(t.Context(), c), connect)
		if err != nil || time.Since(before) != time.Second {
			t.Errorf("%v after %s", err, time.Since(before))
		}
	})
}

func TestGroupsNest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r tape
		role := func(name string, start time.Duration) service.Service {
			return service.Service{Name: name, Run: func(ctx context.Context, _ *service.Control) error {
				return service.NewGroup(config(), zerolog.Nop(), nil).
					Run(ctx, worker(&r, name+"/bus", start, 0), worker(&r, name+"/loop", 0, time.Second))
			}}
		}
		c := service.NewControl()
		ended := make(chan error)
		go func() {
			ended <- service.NewGroup(config(), zerolog.Nop(), nil).
				Run(service.With(t.Context(), c), role("first", time.Second), role("second", 0))
		}()
		time.Sleep(5 * time.Second)
		c.Stop(service.Drain, "SIGTERM")
		if err := <-ended; err != nil {
			t.Error(err)
		}
		r.want(t, "first/bus ready", "first/loop ready", "second/bus ready", "second/loop ready",
			"second/loop stopping", "second/loop finished", "second/bus stopping", "second/bus finished",
			"first/loop stopping", "first/loop finished", "first/bus stopping", "first/bus finished")
	})
}

func TestLoopAndResource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r tape
		loop := service.Loop("loop", func(ctx context.Context) error {
			<-ctx.Done()
			r.note("loop")
			return ctx.Err() // the usual end of a loop is no error
		})
		resource := service.Resource("resource", func(context.Context) error { r.note("open"); return nil },
			func(ctx context.Context) error {
				r.note("close %v", ctx.Err())
				return errors.New("disk full")
			})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- service.NewGroup(config(), zerolog.Nop(), nil).Run(ctx, resource, loop) }()
		synctest.Wait()
		cancel()
		if err := <-ended; err == nil || err.Error() != "stop service resource: disk full" {
			t.Errorf("%v", err)
		}
		r.want(t, "open", "loop", "close <nil>")
	})
}

func TestConfigsNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	good, retry, http := service.DefaultConfig(), service.DefaultRetryConfig(), service.DefaultHTTPConfig()
	if err := errors.Join(good.Validate(), retry.Validate(), http.Validate()); err != nil {
		t.Error(err)
	}
	err := errors.Join((&service.Config{StartWithin: 1}).Validate(), (&service.RetryConfig{Within: -1}).Validate(),
		(&service.HTTPConfig{Listen: "example.com:80"}).Validate(), (&service.HTTPConfig{Listen: "9464"}).Validate())
	want := "drain_within: must be positive, is 0s\nhand_back_within: must be positive, is 0s\n" +
		"kill_within: must be positive, is 0s\nmax_wait: must be at least first_wait, which must be positive\n" +
		"within: must not be negative\nlog_every: must be positive\n" +
		"listen: \"example.com\" is not an address\nlisten: \"9464\" is not address:port"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// program is what the test binary does as a process of its own: it prints what its one service hears.
func program(mode string) int {
	ctx, stop := service.Notify(context.Background(), zerolog.New(os.Stderr))
	defer stop()
	one := service.Service{Name: "one", Run: func(ctx context.Context, c *service.Control) error {
		if mode == "panic" {
			go func() { panic(fmt.Sprintf("free %d, held %d", 3, 5)) }()
		}
		fmt.Println("ready")
		c.Ready()
		<-c.Stopping()
		fmt.Println("stopping")
		<-c.HandingBack()
		fmt.Println("handing back")
		if mode == "deaf" {
			<-ctx.Done()
			fmt.Println("killed")
		}
		return nil
	}}
	if err := service.NewGroup(config(), zerolog.New(os.Stderr), nil).Run(ctx, one); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestSignalsOfARealProcess(t *testing.T) {
	t.Parallel()
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt, "USR1": syscall.SIGUSR1}
	for name, c := range map[string]struct {
		mode  string
		steps []string // line to wait for, then signals to send
		exit  int
		err   string
	}{
		"twice":   {"calm", []string{"ready", "TERM", "stopping", "TERM", "handing back"}, 0, ""},
		"reclaim": {"calm", []string{"ready", "USR1", "stopping", "handing back"}, 0, ""},
		"thrice":  {"deaf", []string{"ready", "INT", "stopping", "TERM", "handing back", "TERM", "killed"}, 0, ""},
		"panic":   {"panic", []string{"ready"}, 2, "panic: free 3, held 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), modeVariable+"="+c.mode)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill() //nolint:errcheck // it has ended when all is well
			lines := newLines(out)
			for _, step := range c.steps {
				if s := signals[step]; s != nil {
					if err := cmd.Process.Signal(s); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if line := lines.next(t); line != step {
					t.Fatalf("line %q, want %q\n%s", line, step, stderr.String())
				}
			}
			_ = cmd.Wait() // the exit code says it
			if cmd.ProcessState.ExitCode() != c.exit || !strings.Contains(stderr.String(), c.err) {
				t.Errorf("%s\n%s", cmd.ProcessState, stderr.String())
			}
		})
	}
}
