package assetcopy_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/shared/assetcopy"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	circuit = "toy"
	token   = "0123456789"
	name    = "v28-toy.params"
)

// pair is a giver behind a real server, a fetcher, and a file. cut, when positive, ends connections after so many
// bytes.
type pair struct {
	*assetcopy.Giver

	content  []byte
	path     string
	folder   string
	url      string
	config   assetcopy.FetcherConfig
	cut      atomic.Int64
	requests atomic.Int64
	served   atomic.Int64

	mu     sync.Mutex
	ranges []string
}

func newPair(t *testing.T, size int, rate bytesize.Bytes) *pair {
	t.Helper()
	p := &pair{content: make([]byte, size), folder: t.TempDir(), path: filepath.Join(t.TempDir(), "file")}
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(p.content)
	if err := os.WriteFile(p.path, p.content, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	p.Giver, err = assetcopy.NewGiver(assetcopy.GiverConfig{RateMax: rate, StallMax: 5 * time.Second,
		Find: func(c string) (string, error) {
			if c != circuit {
				return "", errors.New("no such circuit")
			}
			return p.path, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		p.mu.Lock()
		p.ranges = append(p.ranges, r.Header.Get("Range"))
		p.mu.Unlock()
		p.ServeHTTP(&cutter{ResponseWriter: w, pair: p, left: p.cut.Load()}, r)
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	p.config = assetcopy.DefaultFetcherConfig(p.folder)
	p.config.RoomMargin, p.config.RetryMin, p.config.RetryMax, p.config.TriesMax = 0, time.Millisecond, time.Millisecond, 3
	return p
}

// cutter ends a connection after some bytes.
type cutter struct {
	http.ResponseWriter

	pair *pair
	left int64
}

func (c *cutter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutter) Write(b []byte) (int, error) {
	if c.pair.cut.Load() > 0 {
		if c.left <= 0 {
			panic(http.ErrAbortHandler)
		}
		b = b[:min(int64(len(b)), c.left)]
		c.left -= int64(len(b))
	}
	n, err := c.ResponseWriter.Write(b)
	c.pair.served.Add(int64(n))
	return n, err
}

func (p *pair) want() assetcopy.Want {
	digest := srs.NewDigest()
	_, _ = digest.Write(p.content)
	return assetcopy.Want{
		URL: p.url, Circuit: circuit, Token: token, Name: name, Bytes: bytesize.Bytes(len(p.content)), Digest: digest.Hex(),
	}
}

func (p *pair) fetch(ctx context.Context, t *testing.T, w assetcopy.Want) error {
	t.Helper()
	f, err := assetcopy.NewFetcher(p.config)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Fetch(ctx, w, func(done bytesize.Bytes) {
		if done > w.Bytes {
			t.Errorf("%d of %d bytes are done", done, w.Bytes)
		}
	})
}

// files are those of the folder.
func (p *pair) files(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(p.folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (p *pair) wantFile(t *testing.T) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(p.folder, name))
	if err != nil || !bytes.Equal(got, p.content) {
		t.Fatalf("file of %d bytes: %v", len(got), err)
	}
	for _, f := range p.files(t) {
		if strings.HasSuffix(f, ".part") {
			t.Errorf("%s is left", f)
		}
	}
}

func TestAFileIsCopiedAndListed(t *testing.T) {
	t.Parallel()
	p := newPair(t, 300_000, 0)
	p.Grant(circuit, token, time.Now().Add(time.Minute))
	w := p.want()
	w.Development = true
	if err := p.fetch(t.Context(), t, w); err != nil {
		t.Fatal(err)
	}
	p.wantFile(t)
	if listed, err := srs.ListedAsDevelopment(filepath.Join(p.folder, name)); err != nil || !listed {
		t.Errorf("listed: %v, %v", listed, err)
	}
}

// A copy cut again and again goes on where it was: nothing is sent twice but what was lost on its way.
func TestACopyCutHalfWayGoesOn(t *testing.T) {
	t.Parallel()
	p := newPair(t, 1_000_000, 0)
	p.Grant(circuit, token, time.Now().Add(time.Minute))
	p.cut.Store(400_000)
	if err := p.fetch(t.Context(), t, p.want()); err != nil {
		t.Fatal(err)
	}
	p.wantFile(t)
	if n := p.requests.Load(); n < 3 {
		t.Errorf("%d requests for a file in three parts", n)
	}
	if n := p.served.Load(); n > 3*400_000 {
		t.Errorf("%d bytes were sent", n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ranges[0] != "bytes=0-" || p.ranges[1] == "bytes=0-" {
		t.Errorf("ranges %v", p.ranges)
	}
}

// So does one whose process ended in the middle: what has come is there for the next.
func TestACopyThatWasGivenUpGoesOn(t *testing.T) {
	t.Parallel()
	p := newPair(t, 1_000_000, 4<<20)
	p.Grant(circuit, token, time.Now().Add(time.Minute))
	ctx, cancel := context.WithCancel(t.Context())
	f, err := assetcopy.NewFetcher(p.config)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = f.Fetch(ctx, p.want(), func(done bytesize.Bytes) {
		if done > 500_000 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	before := p.requests.Load()
	if err := p.fetch(t.Context(), t, p.want()); err != nil {
		t.Fatal(err)
	}
	p.wantFile(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.ranges[before]; r == "bytes=0-" || len(r) < len("bytes=500000-") {
		t.Errorf("went on with %s", r)
	}
}

// Two that fetch one file into one folder at the same moment, one of which may be given up at any time, leave the whole
// file and nothing else: one fetches, the other is refused and may come again, and no lock outlives who had it. Nothing
// ever has the file's name that is not the file.
func TestB08TwoThatFetchAtOnceLeaveOneWholeFile(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		p := newPair(t, 200_000, 0)
		p.Grant(circuit, token, time.Now().Add(time.Minute))
		w := p.want()
		whole := func() {
			if got, err := os.ReadFile(filepath.Join(p.folder, name)); err == nil && !bytes.Equal(got, p.content) {
				t.Errorf("round %d: %d bytes have the file's name", round, len(got))
			}
		}
		fetch := func(give func(done bytesize.Bytes, stop func())) error {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			f, err := assetcopy.NewFetcher(p.config)
			if err != nil {
				t.Error(err)
				return err
			}
			defer f.Close()
			return f.Fetch(ctx, w, func(done bytesize.Bytes) { whole(); give(done, stop) })
		}
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				for {
					err := fetch(func(done bytesize.Bytes, stop func()) {
						if i == 0 && int(done) > round*10_000 { // it is given up, and does not come again
							stop()
						}
					})
					if i == 0 || err == nil {
						return
					}
					if fault.KindOf(err) != fault.Conflict {
						t.Errorf("round %d: %v", round, err)
						return
					}
				}
			})
		}
		wg.Wait()
		p.wantFile(t)
	}
}

// A part that was damaged on the disk is found by its digest and fetched again, from its start.
func TestADamagedPartIsFetchedAgain(t *testing.T) {
	t.Parallel()
	p := newPair(t, 200_000, 0)
	p.Grant(circuit, token, time.Now().Add(time.Minute))
	w := p.want()
	part := filepath.Join(p.folder, "."+name+"."+w.Digest+".part")
	if err := os.WriteFile(part, make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.fetch(t.Context(), t, w); err != nil {
		t.Fatal(err)
	}
	p.wantFile(t)
	if n := p.served.Load(); n != 300_000 {
		t.Errorf("%d bytes were sent", n)
	}
}

func TestAFileThatIsNotTheOneIsRefused(t *testing.T) {
	t.Parallel()
	p := newPair(t, 100_000, 0)
	p.Grant(circuit, token, time.Now().Add(time.Minute))
	w := p.want()
	w.Digest = strings.Repeat("0", 32)
	if err := p.fetch(t.Context(), t, w); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("wrong digest: %v", err)
	}
	w = p.want()
	w.Bytes++
	if err := p.fetch(t.Context(), t, w); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("wrong size: %v", err)
	}
	if _, err := os.Stat(filepath.Join(p.folder, name)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has its name: %v", err)
	}
}

func TestWhoHasNoTokenGetsNothing(t *testing.T) {
	t.Parallel()
	p := newPair(t, 1000, 0)
	p.Grant("other", "of-another-circuit", time.Now().Add(time.Minute))
	p.Grant(circuit, "expired", time.Now().Add(-time.Second))
	for _, header := range []string{"", "Bearer ", "Bearer x", "Bearer of-another-circuit", "Bearer expired", token} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+assetcopy.Path+circuit, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", header)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("%q: %s", header, answer.Status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if err := p.fetch(t.Context(), t, p.want()); fault.KindOf(err) != fault.Transient {
		t.Errorf("got %v", err)
	}
	if n := p.served.Load(); n > 1000 { // the words of the refusals
		t.Errorf("%d bytes were sent", n)
	}
	p.Grant(circuit, token, time.Now().Add(time.Minute)) // it may come late
	if err := p.fetch(t.Context(), t, p.want()); err != nil {
		t.Error(err)
	}
}

func TestADiskWithoutRoomIsLeftAlone(t *testing.T) {
	t.Parallel()
	p := newPair(t, 1000, 0)
	p.Grant(circuit, token, time.Now().Add(time.Minute))
	p.config.RoomMargin = 1 << 60
	err := p.fetch(t.Context(), t, p.want())
	if fault.KindOf(err) != fault.Exhausted || p.requests.Load() != 0 {
		t.Errorf("%d requests, %v", p.requests.Load(), err)
	}
}

func TestRateIsCapped(t *testing.T) {
	t.Parallel()
	const rate = 1 << 20
	p := newPair(t, rate/2, rate)
	p.Grant(circuit, token, time.Now().Add(time.Minute))
	began := time.Now()
	if err := p.fetch(t.Context(), t, p.want()); err != nil {
		t.Fatal(err)
	}
	// The first 64 KiB are free.
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("half a second's worth took %s", took)
	}
}

func TestOneFetchesAtATime(t *testing.T) {
	t.Parallel()
	p := newPair(t, 1000, 0)
	ctx, cancel := context.WithCancel(t.Context())
	inside, ended := make(chan struct{}), make(chan error, 1)
	f, err := assetcopy.NewFetcher(p.config)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	once := sync.OnceFunc(func() { close(inside) })
	go func() {
		ended <- f.Fetch(ctx, p.want(), func(bytesize.Bytes) { once(); <-ctx.Done() })
	}()
	<-inside
	if err := p.fetch(t.Context(), t, p.want()); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a second fetch: %v", err)
	}
	cancel()
	<-ended
	w := p.want()
	for _, bad := range []string{"../x", "", "a/b"} {
		w.Name = bad
		if err := p.fetch(t.Context(), t, w); fault.KindOf(err) != fault.Invalid {
			t.Errorf("name %q: %v", bad, err)
		}
	}
}
