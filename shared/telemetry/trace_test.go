package telemetry_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/telemetry"
)

const (
	known = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	other = "00-11111111111111111111111111111111-2222222222222222-00"
)

func TestParseTrace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		known: known,
		other: other,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff":          strings.TrimSuffix(known, "01") + "03",
		"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":          known,
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-the": known,
		"":   "",
		"00": "",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-extra": "",
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.extra": "",
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":       "",
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01":       "",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01":       "",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01":       "",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g":       "",
		"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":       "",
		" 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":      "",
		"cc-" + known[3:] + "-" + strings.Repeat("x", 300):              "",
	} {
		got, err := telemetry.ParseTrace(text)
		if got.String() != want || (err == nil) != (want != "") || err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q -> %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestNewTracesAndChildren(t *testing.T) {
	t.Parallel()
	a, b := telemetry.NewTrace(), telemetry.NewTrace()
	child := a.Child()
	if !a.Valid() || !a.Sampled() || a.TraceID == b.TraceID || a.SpanID == b.SpanID {
		t.Errorf("%s, %s", a, b)
	}
	if child.TraceID != a.TraceID || child.SpanID == a.SpanID || child.Flags != a.Flags {
		t.Errorf("child %s of %s", child, a)
	}
	if back, err := telemetry.ParseTrace(child.String()); err != nil || back != child {
		t.Errorf("%s -> %s, %v", child, back, err)
	}
	if zero := (telemetry.TraceContext{}); zero.Valid() || zero.String() != "" {
		t.Errorf("zero value: %q", zero)
	}
}

func TestB91HeaderIsReadInAnyCase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header map[string]string
		body   string
		want   string // "" for a new trace
		broken bool
	}{
		"exact":                        {map[string]string{"traceparent": known}, other, known, false},
		"canonical":                    {map[string]string{"Traceparent": known}, other, known, false},
		"upper":                        {map[string]string{"TRACEPARENT": known}, "", known, false},
		"exact before other spellings": {map[string]string{"TRACEPARENT": other, "traceparent": known}, "", known, false},
		"broken":                       {map[string]string{"traceparent": "garbage"}, "", "", true},
		"broken, then another":         {map[string]string{"traceparent": "x", "Traceparent": known}, "", known, true},
		"broken, then the body":        {map[string]string{"TraceParent": "x"}, known, known, true},
		"nothing":                      {nil, "", "", false},
		"broken body":                  {nil, "garbage", "", true},
	} {
		got, err := telemetry.ExtractTrace(c.header, c.body)
		if !got.Valid() || (err != nil) != c.broken || c.want != "" && got.String() != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if c.want == "" && (got.String() == known || got.String() == other) {
			t.Errorf("%s: not a new trace: %s", name, got)
		}
	}
}

func TestB92RenamedHeaderDoesNotLoseTheTrace(t *testing.T) {
	t.Parallel()
	// The broker renames the header's first letter; the copy in the body takes over, and nothing is wrong with that.
	got, err := telemetry.ExtractTrace(map[string]string{"Xraceparent": other}, known)
	if err != nil || got.String() != known {
		t.Errorf("%s, %v", got, err)
	}
}

func TestInjectLeavesOneSpelling(t *testing.T) {
	t.Parallel()
	trace, _ := telemetry.ParseTrace(known)
	header := map[string]string{"Traceparent": other, "TRACEPARENT": "x", "Nats-Msg-Id": "a.0.1"}
	trace.Inject(header)
	want := map[string]string{"traceparent": known, "Nats-Msg-Id": "a.0.1"}
	if diff := cmp.Diff(want, header); diff != "" {
		t.Error(diff)
	}
	telemetry.TraceContext{}.Inject(header)
	if len(header) != 1 {
		t.Errorf("%v", header)
	}
}

func TestB91BrokenHeadersAreLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := telemetry.NewCarrier(zerolog.New(&out), time.Hour)
		for range 100 {
			if trace := c.Extract(map[string]string{"traceparent": "x\x1b[2J"}, ""); !trace.Valid() {
				t.Fatal("a broken header cost the trace")
			}
			c.Extract(map[string]string{"traceparent": known}, "")
		}
		if n := strings.Count(out.String(), "\n"); n != 1 {
			t.Errorf("%d lines:\n%s", n, out.String())
		}
		time.Sleep(time.Hour)
		c.Extract(map[string]string{"traceparent": "y"}, "")
		if n := strings.Count(out.String(), "\n"); n != 2 || !strings.Contains(out.String(), `"broken":100`) {
			t.Errorf("%d lines after an hour:\n%s", n, out.String())
		}
	})
}

func FuzzParseTrace(f *testing.F) {
	f.Add(known)
	f.Add("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-the")
	f.Add("00-00000000000000000000000000000000-b7ad6b7169203331-01")
	f.Add("---")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := telemetry.ParseTrace(text)
		if (err == nil) != c.Valid() {
			t.Fatalf("%q: %+v, %v", text, c, err)
		}
		if err != nil {
			return
		}
		if back, err := telemetry.ParseTrace(c.String()); err != nil || back != c {
			t.Fatalf("%q -> %s -> %+v, %v", text, c, back, err)
		}
	})
}
