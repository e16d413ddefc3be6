package top

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/wire"
)

func testConfig() Config {
	config := DefaultConfig()
	config.Zone, config.Now = time.UTC, noon
	return config
}

func TestPageHasEverything(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.jobs.Jobs[0].Key = "<b>&\x1b[2J"
	page, err := Once(t.Context(), testConfig(), f, 100)
	if err != nil {
		t.Fatal(err)
	}
	var text, picture strings.Builder
	if err := errors.Join(page.Text(&text), page.SVG(&picture)); err != nil {
		t.Fatal(err)
	}
	golden(t, "page_100", text.String())
	shown := ""
	for decoder := xml.NewDecoder(strings.NewReader(picture.String())); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			shown += string(text)
		}
	}
	for _, want := range []string{"n2", "draining", "<b>&?[2J", "48 GiB of 64 GiB"} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in the picture", want)
		}
	}
}

// A rack without a leader still has a page: jobs are known, the error says what isn't.
func TestPageWithoutALeader(t *testing.T) {
	t.Parallel()
	f := newFake()
	page, err := Once(t.Context(), testConfig(), &leaderless{f}, 100)
	if page == nil || err == nil || page.Rack != nil || len(page.Jobs.Jobs) != 3 {
		t.Fatalf("page %+v, %v", page, err)
	}
	var text strings.Builder
	if err := page.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"no answer about nodes: nobody leads", "NODES  not known yet", "01890a5d..8059"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	f.err = errors.New("nobody")
	if page, err := Once(t.Context(), testConfig(), f, 100); page != nil || err == nil {
		t.Errorf("of nobody: %v, %v", page, err)
	}
}

type leaderless struct{ *fake }

func (l *leaderless) Nodes(context.Context) (*wire.NodesReply, error) {
	return nil, errors.New("nobody leads")
}

// Without a terminal every change is one line, and what stays the same is none.
func TestFollowWritesALineForEachChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		ctx, cancel := context.WithCancel(t.Context())
		var out strings.Builder
		ended := make(chan error, 1)
		go func() { ended <- Follow(ctx, testConfig(), f, &out) }()
		after := func(change func()) {
			f.mu.Lock()
			change()
			f.mu.Unlock()
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		after(func() {})
		after(func() { f.jobs.Jobs[0].Verified = 5 })
		after(func() { f.err = errors.New("nobody\nleads") })
		after(func() { f.err = errors.New("still nobody") })
		after(func() {
			f.err = nil
			f.nodes.Nodes[0].Devices[0].Quarantined, f.nodes.Nodes[0].Devices[0].Reason = true, "lies"
		})
		after(func() { f.nodes.Nodes, f.jobs.Jobs = f.nodes.Nodes[:1], nil })
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended by %v", err)
		}
		want := `rack: ready, led by c0ffee00-1, term 3
node n1: ready, 3 running
device n1/gpu0: healthy, proves 1 circuits
node n2: draining, 1 running
device n2/gpu0: healthy, proves 1 circuits
device n2/gpu1: quarantined: 3 proofs did not verify, proves 0 circuits
job ` + string(idWaiting) + `: active, 0 of 10 verified, 10 waiting
job ` + string(idRunning) + `: active, 4 of 10 verified, 2 waiting
job ` + string(idRunning) + `: active, 5 of 10 verified, 2 waiting
rack does not answer: nobody leads
rack answers again
device n1/gpu0: quarantined: lies, proves 1 circuits
device n2/gpu0 is gone
device n2/gpu1 is gone
node n2 is gone
`
		if diff := cmp.Diff(want, strings.ReplaceAll(out.String(), "12:00:00 ", "")); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}

func TestFollowEndsWhenNobodyReads(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	_ = r.Close()
	if err := Follow(t.Context(), testConfig(), newFake(), w); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("ended by %v", err)
	}
}

func TestSizesAreShort(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]bytesize.Bytes{
		"0 B": 0, "999 B": 999, "1.0 KiB": 1000, "1 KiB": bytesize.KiB, "21.9 GiB": 21*bytesize.GiB + 900*bytesize.MiB,
		"780 MiB": 779*bytesize.MiB + 600*bytesize.KiB, "8 EiB": 1<<63 - 1,
	} {
		if got := size(b); got != want {
			t.Errorf("%d is %q, not %q", b, got, want)
		}
	}
}
