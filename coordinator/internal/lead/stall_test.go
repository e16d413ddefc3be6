package lead_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator/internal/lead"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/wire"
)

// stallServer is the variable that makes this program an elector of its own; it has the address of the server.
const stallServer = "PROOFRACK_TEST_LEAD_SERVER"

const stallLease = 1000 * time.Millisecond

// TestElectorProcess is no test of its own: it is the process that the next one stops.
func TestElectorProcess(t *testing.T) {
	url := os.Getenv(stallServer)
	if url == "" {
		return
	}
	config := natsbus.DefaultConfig()
	config.URLs = []string{url}
	b, err := natsbus.Dial(t.Context(), config, natsbus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	kv, err := b.KV(t.Context(), wire.BucketLead)
	if err != nil {
		t.Fatal(err)
	}
	e, err := lead.New(kv, lead.Config{Instance: "child", Lease: stallLease}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // until the parent has gone or closes it
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	_ = e.Run(ctx, func(ctx context.Context, reign lead.Reign) error {
		fmt.Printf("leads %d\n", reign.Term)
		<-ctx.Done()
		fmt.Printf("ended %d\n", reign.Term)
		return ctx.Err()
	})
}

// leadStore is a server with the bucket that the lead is in.
func leadStore(t *testing.T) (*natsbus.Embedded, *natsbus.Bus) {
	t.Helper()
	server, err := natsbus.StartEmbedded(natsbus.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	b, err := natsbus.Dial(t.Context(), natsbus.DefaultConfig(), natsbus.Options{Embedded: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	err = b.Setup(t.Context(), bus.Topology{Buckets: []bus.Bucket{{Name: wire.BucketLead, BytesMax: bytesize.MiB}}})
	if err != nil {
		t.Fatal(err)
	}
	return server, b
}

// A host that stood still for several leases: when nobody else took the lead, its reign goes on in the same term; when
// somebody did, it ends at once.
func TestALeaderWhoseHostStoodStill(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]bool{"alone": false, "another has taken over": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, b := leadStore(t)
			child := exec.Command(os.Args[0], "-test.run=^TestElectorProcess$", "-test.v")
			child.Env = append(os.Environ(), stallServer+"="+server.URL())
			stdin, err := child.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			lines := make(chan string, 100)
			go func() {
				defer close(lines)
				for scan := bufio.NewScanner(stdout); scan.Scan(); {
					if text := scan.Text(); strings.HasPrefix(text, "leads ") || strings.HasPrefix(text, "ended ") {
						lines <- text
					}
				}
			}()
			expect := func(want string, within time.Duration) {
				t.Helper()
				select {
				case line := <-lines:
					if line != want {
						t.Errorf("it says %q, want %q", line, want)
					}
				case <-time.After(within):
					if want != "" {
						t.Errorf("not in time: %s", want)
					}
				}
			}
			expect("leads 1", time.Minute)
			signal := func(s os.Signal) {
				if err := child.Process.Signal(s); err != nil {
					t.Error(err)
				}
			}
			signal(syscall.SIGSTOP)
			if other {
				takeOver(t, b)
			} else {
				time.Sleep(3 * stallLease)
			}
			signal(syscall.SIGCONT)
			if other {
				expect("ended 1", time.Minute)
			} else {
				expect("", 3*stallLease) // nothing happens
			}
			_ = stdin.Close()
			if !other {
				expect("ended 1", time.Minute)
			}
			if err := child.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// takeOver leads until the test ends, and returns when it does.
func takeOver(t *testing.T, b bus.Bus) {
	t.Helper()
	kv, err := b.KV(t.Context(), wire.BucketLead)
	if err != nil {
		t.Fatal(err)
	}
	e, err := lead.New(kv, lead.Config{Instance: "parent", Lease: stallLease}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	leads, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = e.Run(ctx, func(ctx context.Context, _ lead.Reign) error {
			close(leads)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	select {
	case <-leads:
	case <-time.After(time.Minute):
		t.Fatal("nobody takes over")
	}
}
